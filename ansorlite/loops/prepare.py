"""A function cut in two: what is done once, with the constants, and what is done in every call.

Lowering gives buffers that follow from constants alone the scope PREPARED. Statements that store to these go into a
function of their own, and the buffers that the rest reads become params of the rest::

    def kernel(X, W) -> Y:              def kernel_prepare(W) -> packed:
        alloc packed in PREPARED            packed = ... W ...
        packed = ... W ...          ->  def kernel(X, packed) -> Y:
        Y = ... X ... packed ...            Y = ... X ... packed ...

One call of the first and any number of calls of the second do what as many calls of the whole do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorlite.loops.nodes import Alloc, Block, Buffer, Function, Scope, Stmt, block
from ansorlite.loops.visit import loads, stores


@dataclass(frozen=True, eq=False)
class Parts:
    """The two parts of a function.

    Attributes:
        prepare: from the constants that it reads to ``prepared``; ``None`` if there is nothing to prepare.
        prepared: the buffers that ``prepare`` fills and ``main`` reads.
        main: from the other inputs and the constants that it still reads, then ``prepared``, to the outputs.
    """

    prepare: Function | None
    prepared: tuple[Buffer, ...]
    main: Function


def split(function: Function) -> Parts:
    """The parts of ``function``; without PREPARED buffers ``main`` is the function itself."""
    temporaries, body = _unwrapped(function.body)
    if not any(buffer.scope is Scope.PREPARED for buffer in temporaries):
        return Parts(None, (), function)
    early = [s for s in body if any(store.buffer.scope is Scope.PREPARED for store in stores(s))]
    late = [s for s in body if s not in early]
    needed = {load.buffer for s in late for load in loads(s)}
    prepared = tuple(buffer for buffer in temporaries if buffer.scope is Scope.PREPARED and buffer in needed)
    known = {load.buffer for s in early for load in loads(s)}
    inputs = function.params[: len(function.params) - function.outputs]
    outputs = function.params[len(inputs) :]
    prepare = Function(
        f"{function.name}_prepare",
        (*(buffer for buffer in inputs if buffer in known), *prepared),
        len(prepared),
        _wrapped((b for b in temporaries if b.scope is Scope.PREPARED and b not in prepared), early),
    )
    kept = (buffer for buffer in inputs if buffer in needed or buffer.scope is not Scope.CONSTANT)
    main = Function(
        function.name,
        (*kept, *prepared, *outputs),
        function.outputs,
        _wrapped((b for b in temporaries if b.scope is not Scope.PREPARED), late),
    )
    return Parts(prepare, prepared, main)


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
