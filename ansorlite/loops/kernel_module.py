"""A kernel as a machine runs it: not one function but several, with the launches of them.

Lowering gives one function. What of it follows from constants alone is launched once, the rest in every call: it gives buffers
that follow from constants the scope PREPARED. Statements that store to these go into a function of their own, and the buffers
that the rest reads become params of the rest::

    def kernel(X, W) -> Y:              def kernel_prepare(W) -> packed:          # launched once
        alloc packed in PREPARED            packed = ... W ...
        packed = ... W ...          ->  def kernel(X, packed) -> Y:               # launched in every call
        Y = ... X ... packed ...            Y = ... X ... packed ...

One launch of the first and any number of launches of the second do what as many calls of the whole do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from ansorlite.loops.nodes import Alloc, Block, Buffer, Function, Scope, Stmt, block
from ansorlite.loops.visit import loads, stores


class When(Enum):
    """At what times a function is launched."""

    ONCE = "before the first of all calls with the same constants"
    CALL = "in every call"


@dataclass(frozen=True, eq=False)
class Launch:
    """One run of a function. Launches of one time run in a row: each sees what those before it stored.

    Attributes:
        function: its params are the module's, or buffers that launches hand on.
    """

    function: Function
    when: When


@dataclass(frozen=True, eq=False)
class KernelModule:
    """The functions of a kernel, and when each of them is launched.

    Attributes:
        params: in call order: inputs, then outputs.
        outputs: how many of the last ``params`` are written; the others are only read.
        handed: buffers that launches hand on to later ones: those of scope PREPARED from what is launched once to what every call
            launches, those of scope GLOBAL from one launch to others of the same time.
        launches: in order, those of :attr:`When.ONCE` first.
    """

    name: str
    params: tuple[Buffer, ...]
    outputs: int
    handed: tuple[Buffer, ...]
    launches: tuple[Launch, ...]

    @property
    def prepared(self) -> tuple[Buffer, ...]:
        """What is there for all calls with the same constants."""
        return tuple(buffer for buffer in self.handed if buffer.scope is Scope.PREPARED)

    @property
    def temporaries(self) -> tuple[Buffer, ...]:
        """What lives for the launches of one time."""
        return tuple(buffer for buffer in self.handed if buffer.scope is Scope.GLOBAL)

    def at(self, when: When) -> tuple[Function, ...]:
        """The functions that are launched then, in order."""
        return tuple(launch.function for launch in self.launches if launch.when is when)

    @property
    def unread(self) -> tuple[int, ...]:
        """Positions of the params that calls have no use for: they are read once, if at all."""
        used = {buffer for function in self.at(When.CALL) for buffer in function.params}
        return tuple(number for number, buffer in enumerate(self.params) if buffer not in used)

    def map(self, change: Callable[[Function], Function]) -> KernelModule:
        """The module of the functions that ``change`` gives; their params stay."""
        launches = tuple(Launch(change(launch.function), launch.when) for launch in self.launches)
        return replace(self, launches=launches)


def kernel_module(function: Function) -> KernelModule:
    """``function`` as what is launched once, if there is such, and what is launched in every call."""
    temporaries, body = _unwrapped(function.body)
    if not any(buffer.scope is Scope.PREPARED for buffer in temporaries):
        return KernelModule(function.name, function.params, function.outputs, (), (Launch(function, When.CALL),))
    early = [s for s in body if any(store.buffer.scope is Scope.PREPARED for store in stores(s))]
    late = [s for s in body if s not in early]
    needed = {load.buffer for s in late for load in loads(s)}
    prepared = tuple(buffer for buffer in temporaries if buffer.scope is Scope.PREPARED and buffer in needed)
    known = {load.buffer for s in early for load in loads(s)}
    inputs = function.params[: len(function.params) - function.outputs]
    outputs = function.params[len(inputs) :]
    once = Function(
        f"{function.name}_prepare",
        (*(buffer for buffer in inputs if buffer in known), *prepared),
        len(prepared),
        _wrapped((b for b in temporaries if b.scope is Scope.PREPARED and b not in prepared), early),
    )
    kept = (buffer for buffer in inputs if buffer in needed or buffer.scope is not Scope.CONSTANT)
    call = Function(
        function.name,
        (*kept, *prepared, *outputs),
        function.outputs,
        _wrapped((b for b in temporaries if b.scope is not Scope.PREPARED), late),
    )
    launches = (Launch(once, When.ONCE), Launch(call, When.CALL))
    return KernelModule(function.name, function.params, function.outputs, prepared, launches)


def _unwrapped(stmt: Stmt) -> tuple[list[Buffer], tuple[Stmt, ...]]:
    """The temporaries that the whole function has, outermost first, and the statements inside."""
    buffers = []
    while isinstance(stmt, Alloc) and stmt.buffer.scope in (Scope.GLOBAL, Scope.PREPARED):
        buffers.append(stmt.buffer)
        stmt = stmt.body
    return buffers, stmt.body if isinstance(stmt, Block) else (stmt,)


def _wrapped(buffers: Iterable[Buffer], statements: Iterable[Stmt]) -> Stmt:
    result = block(*statements)
    for buffer in reversed(list(buffers)):
        result = Alloc(buffer, result)
    return result
