"""A function as the source of a plain Python function: loops over scalars, one statement per store.

What is written here *is* the meaning of the loop IR, so it is written to be read. Buffers are flat lists of numpy
scalars, and an operation on numpy scalars of a dtype is the operation, rounding and wrap-around of that dtype. Loop
variables and index literals are Python ints, which numpy scalars accept beside them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.loops.nodes import (
    INDEPENDENT,
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    Function,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Prefetch,
    Role,
    Stmt,
    Store,
)
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from ansorlite.te.index.ranges import Interval, bounds
from ansorlite.te.numeric import apply, convert
from ansorlite.te.ops import BINARY, INFIX, UNARY, BinaryOp, UnaryOp
from ansorlite.te.traversal import walk

#: Python refuses more than 20 loops inside each other in one function, so deeper ones get a function of their own.
_LOOPS_PER_FUNCTION: Final = 16


class OutOfBoundsError(IndexError):
    """A load or store outside of its buffer: lowering or a pass made a wrong program."""


@dataclass(frozen=True)
class _Site:
    """Where an index is checked: what an error says."""

    buffer: Buffer
    dimension: int
    variables: tuple[str, ...]


def garbage(dtype: str) -> Any:
    """What fresh memory holds: NaN, or a bit pattern that no test expects."""
    if dtypes.is_float(dtype):
        return dtypes.NUMPY[dtype].type(float("nan"))
    return np.bool_(True) if dtype == "bool" else dtypes.NUMPY[dtype].type(np.iinfo(dtype).max - 0x2A)


def _minimum(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


def _maximum(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


#: What is stored, at which place of which buffer.
_Fetched: TypeAlias = tuple[Any, int, list[Any]]


def _landing(groups: list[list[_Fetched]]) -> Callable[[int], None]:
    """Stores what all ``groups`` but the last so many have fetched."""

    def land(pending: int) -> None:
        while len(groups) > pending:
            for value, at, buffer in groups.pop(0):
                buffer[at] = value

    return land


def _rounded_once(op: BinaryOp | UnaryOp, dtype: str) -> Callable[..., Any]:
    """An operation on float16 or bfloat16 scalars."""
    return lambda *operands: apply(op, operands, dtype, dtype)[()]


def _truncation(dtype: str) -> Callable[[Any], Any]:
    """A float scalar as an integer."""
    return lambda value: convert(value, dtype)[()]


def _int64(x: Any) -> Any:
    """A Python int, which never overflows, as int64, which wraps around."""
    return np.int64((int(x) + (1 << 63)) % (1 << 64) - (1 << 63))


def _maybe_python_int(expr: Expr) -> bool:
    """Whether the value may be a Python int, which has no width, instead of a numpy scalar."""
    match expr:
        case Var() | Const():
            return expr.dtype == dtypes.INDEX
        case Binary((BinaryOp.MIN | BinaryOp.MAX), a, b) | Select(_, a, b) if expr.dtype == dtypes.INDEX:
            return _maybe_python_int(a) or _maybe_python_int(b)
        case Binary(_, a, b) if expr.dtype == dtypes.INDEX:
            return _maybe_python_int(a) and _maybe_python_int(b)
        case Unary(_, a) if expr.dtype == dtypes.INDEX:
            return _maybe_python_int(a)
    return False


class _Writer:
    """Writes the source of one function; ``names`` becomes its global namespace."""

    def __init__(self, *, check: bool, lockstep: bool) -> None:
        self.check = check
        self.lockstep = lockstep
        self.lines: list[str] = []
        fetched: list[list[_Fetched]] = []
        self.names: dict[str, Any] = {
            "fetched": fetched,
            "land": _landing(fetched),
            "minimum": _minimum,
            "maximum": _maximum,
            "int64": _int64,
            "bool_": np.bool_,
            "out_of_bounds": self._out_of_bounds,
        }
        self.shared: set[Expr] = set()
        self.computed: dict[Expr, str] = {}
        self.symbols: dict[Var | Buffer, str] = {}
        self.loops: list[tuple[Var, str]] = []
        self.ranges: dict[Var, Interval] = {}
        self.sites: list[_Site] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def symbol(self, owner: Var | Buffer) -> str:
        """The Python name of a loop variable or buffer, made up when it is first met."""
        if owner not in self.symbols:
            self.symbols[owner] = f"_{re.sub(r'[^A-Za-z0-9]', '_', owner.name)}_{len(self.symbols)}"
        return self.symbols[owner]

    def fresh(self, stem: str) -> str:
        return f"{stem}__{len(self.lines)}"

    def constant(self, value: Any, stem: str) -> str:
        name = f"{stem}__{len(self.names)}"
        self.names[name] = value
        return name

    # Statements ------------------------------------------------------------------------------------------------------
    def statement(self, stmt: Stmt, depth: int) -> None:
        match stmt:
            case Block(body):
                for child in body:
                    self.statement(child, depth)
                if not body:
                    self.line(depth, "pass")
            case For():
                self.loop(stmt, depth)
            case Store():
                value, at = self.value_and_address(stmt)
                if self.lands_late(stmt):
                    self.line(depth, f"fetched[-1].append(({value}, {at}, {self.symbol(stmt.buffer)}))")
                else:
                    self.line(depth, f"{self.symbol(stmt.buffer)}[{at}] = {value}")
            case FetchGroup(body):
                self.line(depth, "fetched.append([])" if self.lockstep else "pass")
                self.statement(body, depth)
            case Await(pending):
                self.line(depth, f"land({pending})" if self.lockstep else "pass")
            case If(cond, body):
                self.line(depth, f"if {self.expr(cond)}:")
                self.statement(body, depth + 1)
            case Prefetch(load):
                self.line(depth, self.expr(load))
            case Intrinsic():
                self.statement(stmt.body, depth)
            case Alloc(buffer, body):
                fill = self.constant(garbage(buffer.dtype), "garbage")
                self.line(depth, f"{self.symbol(buffer)} = [{fill}] * {buffer.size}")
                self.statement(body, depth)
            case _:
                raise TypeError(f"not a statement of the loop IR: {stmt!r}")

    def loop(self, loop: For, depth: int) -> None:
        self.loops.append((loop.var, self.symbol(loop.var)))
        extent = self.expr(loop.extent)
        self.ranges[loop.var] = (0, max(bounds(loop.extent, self.ranges)[1] - 1, 0))
        if len(self.loops) % _LOOPS_PER_FUNCTION == 0:
            part = self.fresh("part")
            self.line(depth, f"def {part}():")
            self.loop_here(loop, extent, depth + 1)
            self.line(depth, f"{part}()")
        else:
            self.loop_here(loop, extent, depth)
        self.loops.pop()

    def loop_here(self, loop: For, extent: str, depth: int) -> None:
        name = self.symbol(loop.var)
        if self.lockstep and loop.kind is LoopKind.VECTORIZED:
            start, lanes = self.fresh("start"), self.fresh("lanes")
            self.line(depth, f"for {start} in range(0, {extent}, {loop.lanes}):")
            self.line(depth + 1, f"{lanes} = range({start}, min({start} + {loop.lanes}, {extent}))")
            self.lockstep_statement(loop.body, name, lanes, depth + 1)
        else:
            order = "shuffled" if self.lockstep and loop.kind in INDEPENDENT else "range"
            self.line(depth, f"for {name} in {order}({extent}):")
            if self.lockstep and loop.kind is LoopKind.BLOCK:
                self.line(depth + 1, "fetched.clear()")
            self.statement(loop.body, depth + 1)

    def lockstep_statement(self, stmt: Stmt, lane: str, lanes: str, depth: int) -> None:
        """Every lane does its loads before any lane stores."""
        match stmt:
            case Block(body):
                for child in body:
                    self.lockstep_statement(child, lane, lanes, depth)
            case Store():
                value, at = self.value_and_address(stmt)
                self.line(depth, f"for value, at in [({value}, {at}) for {lane} in {lanes}]:")
                stored = f"fetched[-1].append((value, at, {self.symbol(stmt.buffer)}))"
                self.line(depth + 1, stored if self.lands_late(stmt) else f"{self.symbol(stmt.buffer)}[at] = value")
            case If(cond, body):
                active = self.fresh("active")
                self.line(depth, f"{active} = [{lane} for {lane} in {lanes} if {self.expr(cond)}]")
                self.lockstep_statement(body, lane, active, depth)
            case _:
                raise TypeError(f"a vectorized loop holds only stores and ifs, not {type(stmt).__name__}")

    def lands_late(self, store: Store) -> bool:
        return self.lockstep and store.role is Role.FETCH

    def value_and_address(self, store: Store) -> tuple[str, str]:
        """In the order in which Python evaluates them. What they share is computed once."""
        uses = Counter(child for root in (store.value, *store.indices) for node in walk(root) for child in node.children())
        self.shared = {node for node, count in uses.items() if count > 1 and not isinstance(node, Const | Var)}
        self.computed = {}
        value = self.expr(store.value)
        if _maybe_python_int(store.value):
            value = f"int64({value})"
        address = self.address(store.buffer, store.indices)
        self.shared = set()
        return value, address

    # Expressions -----------------------------------------------------------------------------------------------------
    def address(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        """The flat element number, with every index checked against its extent."""
        if len(indices) != len(buffer.shape):
            raise OutOfBoundsError(f"{buffer!r} is indexed with {len(indices)} indices")
        terms = [
            f"{self.checked_index(buffer, dimension, index)} * {stride}"
            for dimension, (index, stride) in enumerate(zip(indices, buffer.strides, strict=True))
        ]
        return " + ".join(terms) or "0"

    def checked_index(self, buffer: Buffer, dimension: int, index: Expr) -> str:
        text, extent = self.expr(index), buffer.shape[dimension]
        if not self.check or (isinstance(index, Const) and 0 <= index.value < extent):
            return text
        self.sites.append(_Site(buffer, dimension, tuple(var.name for var, _ in self.loops)))
        values = "".join(f"{name}, " for _, name in self.loops)
        return f"(at if 0 <= (at := {text}) < {extent} else out_of_bounds({len(self.sites) - 1}, at, ({values})))"

    def _out_of_bounds(self, site: int, value: int, values: tuple[int, ...]) -> int:
        where = self.sites[site]
        loops = ", ".join(f"{name}={x}" for name, x in zip(where.variables, values, strict=True))
        raise OutOfBoundsError(
            f"index {where.dimension} of {where.buffer.name}{list(where.buffer.shape)} is {value}, outside of "
            f"0..{where.buffer.shape[where.dimension] - 1}, at {loops or 'no loop'}"
        )

    def expr(self, expr: Expr) -> str:
        """Python's text of ``expr``, to be evaluated after every text asked for before."""
        if expr not in self.shared:
            return self.operation(expr)
        if expr not in self.computed:
            text = self.operation(expr)
            self.computed[expr] = self.fresh(f"shared{len(self.computed)}")
            return f"({self.computed[expr]} := {text})"
        return self.computed[expr]

    def arm(self, expr: Expr) -> str:
        """As :meth:`expr`, but perhaps never evaluated: nothing that follows may rely on what it computes."""
        before = dict(self.computed)
        text = self.expr(expr)
        self.computed = before
        return text

    def operation(self, expr: Expr) -> str:
        match expr:
            case Const(value, dtype):
                if dtype in (dtypes.INDEX, "bool"):
                    return f"({value})"
                return self.constant(dtypes.NUMPY[dtype].type(value), "const")
            case Var():
                return self.symbols[expr]
            case Load(buffer, indices):
                return f"{self.symbol(buffer)}[{self.address(buffer, indices)}]"
            case Binary(op, a, b):
                text = self.binary(op, a, b)
                return f"int64({text})" if _maybe_python_int(expr) and self.may_wrap(expr) else text
            case Unary(op, a, dtype):
                function = _rounded_once(op, dtype) if dtype in dtypes.STORAGE_FLOATS else UNARY[op].numpy
                return f"{self.constant(function, op.value)}({self.expr(a)})"
            case Select(cond, then, otherwise):
                condition = self.expr(cond)
                return f"({self.arm(then)} if {condition} else {self.arm(otherwise)})"
            case Cast(a, dtype):
                text = self.expr(a)
                if a.dtype == "bool" or _maybe_python_int(a):
                    text = f"{'bool_' if a.dtype == 'bool' else 'int64'}({text})"
                if dtypes.is_float(a.dtype) and dtypes.is_integer(dtype):
                    return f"{self.constant(_truncation(dtype), dtype)}({text})"
                return f"{text}.astype({self.constant(dtypes.NUMPY[dtype], dtype)})"
        raise TypeError(f"not an expression of the loop IR: {expr!r}")

    def may_wrap(self, expr: Expr) -> bool:
        """Whether int64 may not hold every exact value of an index."""
        return not all(map(math.isfinite, bounds(expr, self.ranges)))

    def binary(self, op: BinaryOp, a: Expr, b: Expr) -> str:
        x, y = self.expr(a), self.expr(b)
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            return f"{'minimum' if op is BinaryOp.MIN else 'maximum'}({x}, {y})"
        if op in INFIX:
            return f"({x} {INFIX[op]} {y})"
        if a.dtype in dtypes.STORAGE_FLOATS:
            return f"{self.constant(_rounded_once(op, a.dtype), op.name.lower())}({x}, {y})"
        if op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and isinstance(b, Const) and b.value != 0:
            return f"({x} {op.value} {y})"
        return f"{self.constant(BINARY[op].numpy, op.name.lower())}({x}, {y})"


def translate(function: Function, *, check: bool, lockstep: bool) -> Callable[..., None]:
    """A Python function of (one flat list of numpy scalars per param..., ``shuffled``).

    Args:
        check: every index is compared with its extent.
        lockstep: VECTORIZED loops run ``lanes`` iterations at a time, each statement loading for all lanes before it
            stores for any; PARALLEL and bound loops run in the order that ``shuffled(extent)`` gives; what is fetched lands as
            late as an Await allows.
    """
    writer = _Writer(check=check, lockstep=lockstep)
    params = ", ".join([*(writer.symbol(buffer) for buffer in function.params), "shuffled"])
    writer.line(0, f"def function({params}):")
    writer.statement(function.body, 1)
    source = "\n".join(writer.lines)
    # The source is made of numbers, operators and names that were made up above; nothing in it comes from outside.
    exec(compile(source, "<loops>", "exec"), writer.names)
    result: Callable[..., None] = writer.names["function"]
    return result
