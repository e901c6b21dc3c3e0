"""The function ``main`` of a module: which functions are called, in which order, on which values.

It is written in Python, and called once, with handles instead of arrays, when the module is made:

>>> before: def main(call, x, w, b): h = call("linear", x, w, b); return call("relu", h)
>>> after:  inputs x, w, b; v0 = linear(x, w, b); v1 = relu(v0); outputs v1
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from ansorlite.errors import AnsorliteError, ArgumentError
from ansorlite.graph.describe import Value
from ansorlite.module.function import ModuleFunction, kinds


@dataclass(frozen=True, eq=False)
class Handle:
    """A value while ``main`` is being written down: an input, or what a call gives."""

    name: str

    def __bool__(self) -> NoReturn:
        raise TypeError("no condition can depend on what is computed later")


#: ``main(call, *inputs)``, which returns a value or a tuple of them. ``call(name, *values)`` gives a value, or a tuple of them if
#: the function has several outputs.
PythonMain: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """One call: names of a function and of values."""

    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.outputs)} = {self.function}({', '.join(self.inputs)})"


@dataclass(frozen=True)
class Main:
    """What ``main`` does.

    Attributes:
        parameters: each input's name, shape and dtype.
        calls: in order; each value is made by one of them, or is an input.
        outputs: the values that it returns.
        single: whether it returns one value as it is, not a tuple.
    """

    parameters: tuple[tuple[str, Value], ...]
    calls: tuple[Call, ...]
    outputs: tuple[str, ...]
    single: bool

    @property
    def inputs(self) -> dict[str, Value]:
        """Name → shape and dtype."""
        return dict(self.parameters)


def traced(function: PythonMain, functions: Mapping[str, ModuleFunction]) -> Main:
    """What ``function(call, *inputs)`` does with ``functions``. The inputs have the shapes and dtypes of what they are given to.

    Raises:
        ArgumentError: it has other parameters than names, calls what is not there or with values that do not fit, does not use an
            input, raises, or returns anything else than results.
    """
    names = _parameters(function)
    tracer = _Tracer(names, functions)
    try:
        returned = function(tracer.call, *tracer.inputs)
    except AnsorliteError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ArgumentError(f"main raises {type(error).__name__} ({reason}); it may only call the module's functions") from error
    results = returned if isinstance(returned, tuple) else (returned,)
    if not results or not all(tracer.made(result) for result in results):
        raise ArgumentError(f"main returns {returned!r}; it must return what calls give, one value or a tuple of them")
    unused = [name for name in names if name not in tracer.kinds]
    if unused:
        raise ArgumentError(f"main does not give its input {unused[0]} to any function, so nothing says its shape; leave it out")
    return Main(
        parameters=tuple((name, tracer.kinds[name]) for name in names),
        calls=tuple(tracer.calls),
        outputs=tuple(result.name for result in results),
        single=not isinstance(returned, tuple),
    )


def _parameters(function: PythonMain) -> list[str]:
    """The names of the inputs: all parameters but the first."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    if not parameters or any(p.kind not in plain or p.default is not p.empty for p in parameters):
        raise ArgumentError("main must take call and its inputs by name, without defaults: def main(call, x, w): ...")
    return [parameter.name for parameter in parameters[1:]]


class _Tracer:
    """Writes down what ``main`` calls.

    Attributes:
        kinds: the values whose shape and dtype are known.
    """

    def __init__(self, names: list[str], functions: Mapping[str, ModuleFunction]) -> None:
        self.inputs = [Handle(name) for name in names]
        self.kinds: dict[str, Value] = {}
        self.calls: list[Call] = []
        self._functions = functions
        self._known = set(self.inputs)
        self._fresh = (name for name in map("v{}".format, itertools.count()) if name not in names)

    def made(self, value: object) -> bool:
        """Whether a call gave it."""
        return isinstance(value, Handle) and value in self._known and value not in self.inputs

    def call(self, name: str, /, *values: Handle) -> Handle | tuple[Handle, ...]:
        """Write a call of the function ``name`` down."""
        if not isinstance(name, str) or name not in self._functions:
            known = ", ".join(self._functions)
            raise ArgumentError(f"main calls {name!r}, which is not in the module; its functions are: {known}")
        function = self._functions[name]
        wanted = len(function.inputs)
        if len(values) != wanted:
            raise ArgumentError(f"main gives {name} {len(values)} values, but it takes {wanted}: {function.signature}")
        for value, buffer, kind in zip(values, function.inputs, kinds(function.inputs), strict=True):
            if not isinstance(value, Handle) or value not in self._known:
                raise ArgumentError(f"main gives {name} {value!r}; it may give its own inputs, and what its calls give")
            found = self.kinds.setdefault(value.name, kind)
            if found != kind:
                what = value.name
                raise ArgumentError(f"main gives {name} {what} as {buffer.name}, which is {kind}; but {what} is {found}")
        results = tuple(Handle(next(self._fresh)) for _ in function.outputs)
        self.kinds.update(zip((result.name for result in results), kinds(function.outputs), strict=True))
        self._known.update(results)
        self.calls.append(Call(name, tuple(v.name for v in values), tuple(result.name for result in results)))
        return results[0] if len(results) == 1 else results
