"""Traces read back from text: what is no call of a primitive is refused, nothing is executed."""

from __future__ import annotations

import ast
import operator
from typing import Final

from ansorlite.errors import ScheduleError
from ansorlite.schedule.primitives import PRIMITIVES
from ansorlite.schedule.samples import Fork, Symbol
from ansorlite.schedule.schedule import Schedule, Stage
from ansorlite.te.dag import ComputeDAG

#: No trace is longer, in characters and in statements.
LONGEST: Final = 1 << 20
MOST_STATEMENTS: Final = 4096
#: No number in one is larger.
_LARGEST: Final = 1 << 62
_SAMPLES: Final = frozenset({"sample", "sample_tile"})
_CALLS: Final = frozenset({*PRIMITIVES, *_SAMPLES, "stage"})
_OPERATORS: Final = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def read(dag: ComputeDAG, text: str, *, decided: bool = False) -> Schedule:
    """The schedule that a printed trace makes of a computation.

    Args:
        decided: whether it must be the trace of one program, which samples nothing.

    Raises:
        ScheduleError: the text is no trace, or one of another computation; the message names the line.
    """
    return read_into(Schedule(dag), text, decided=decided)


def read_into(schedule: Schedule, text: str, *, decided: bool = False) -> Schedule:
    """``schedule``, of which nothing was said yet, after what a printed trace does; see :func:`read`."""
    if len(text) > LONGEST:
        raise ScheduleError(f"the trace has {len(text):,} characters; none is longer than {LONGEST:,}")
    try:
        (function,) = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ScheduleError(f"the trace is not what a trace prints, one function: {error}") from None
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or ast.unparse(function.args) != "s":
        raise ScheduleError("the trace is not what a trace prints: one function of the schedule s")
    if len(function.body) > MOST_STATEMENTS:
        raise ScheduleError(f"the trace has {len(function.body):,} statements; none has more than {MOST_STATEMENTS:,}")
    if decided and "sample" in text and (open_ := _sampled(function)):
        raise ScheduleError(f"the trace leaves {', '.join(open_)} open; a program decides all")
    reader = _Reader(schedule)
    for statement in function.body:
        try:
            reader.statement(statement)
        except ScheduleError as error:
            raise ScheduleError(f"line {statement.lineno} of the trace: {error}") from error
        except Fork as fork:
            raise ScheduleError(f"line {statement.lineno} of the trace depends on what {fork.hole.name} is") from None
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            raise ScheduleError(
                f"line {statement.lineno} of the trace has arguments that the primitive does not take: {error}"
            ) from error
    return reader.schedule


class _Reader:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.values: dict[str, object] = {}

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.values[name] = self.value(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Call() as call):
                results = self.call(call)
                if not isinstance(results, tuple):
                    raise ScheduleError("this call makes one thing, not several")
                for target, result in zip(names, results, strict=True):
                    if not isinstance(target, ast.Name):
                        raise ScheduleError("only names are assigned to")
                    self.values[target.id] = result
            case _:
                raise ScheduleError("it is neither a call of a primitive nor an assignment of what one makes")

    def call(self, node: ast.Call) -> object:
        match node.func:
            case ast.Attribute(value=ast.Name(id="s"), attr=method) if method in _CALLS:
                given = [self.value(argument) for argument in node.args]
                named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg is not None}
                result: object = getattr(self.schedule, method)(*given, **named)
                return result
        raise ScheduleError(f"{ast.unparse(node.func)[:60]} is no primitive; there are {', '.join(sorted(_CALLS))}")

    def value(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return _small(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return _small(-value)
            case ast.Name(id=name):
                if name not in self.values:
                    raise ScheduleError(f"{name} is not there yet")
                return self.values[name]
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.value(item) for item in items)
            case ast.Subscript(value=whole, slice=index):
                of, at = self.value(whole), self.value(index)
                if (isinstance(of, Stage) and isinstance(at, str)) or (isinstance(of, tuple) and isinstance(at, int)):
                    return of[at]  # type: ignore[index]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                a, b = self.value(left), self.value(right)
                if isinstance(a, int | Symbol) and isinstance(b, int | Symbol):
                    return _small(_OPERATORS[type(op)](a, b))
            case ast.Call():
                return self.call(node)
        raise ScheduleError(f"{ast.unparse(node)[:60]} is nothing that a trace has in it")


def _sampled(function: ast.FunctionDef) -> list[str]:
    """The names of what a trace samples. Nothing of it is done yet: the tables of tiles may be large."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    samples = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _SAMPLES)
    names = (next((each.value for each in call.keywords if each.arg == "name"), None) for call in samples)
    return [str(name.value) if isinstance(name, ast.Constant) else "a sample" for name in names]


def _small(value: object) -> object:
    if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
        raise ScheduleError("it has a number that is larger than any in a trace")
    return value
