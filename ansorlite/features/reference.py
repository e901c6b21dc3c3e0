"""The slow reference: the same features, read off the lowered loop IR of one program by enumerating its addresses.

It knows nothing of sketches, columns or regions. Tests hold ``extract`` against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.assemble import assemble
from ansorlite.features.facts import ALWAYS, AccessFacts, StatementFacts
from ansorlite.features.operations import operations
from ansorlite.loops.kernel_module import When, kernel_module
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, Load, LoopKind, Prefetch, Role, Scope, Stmt, Store, children
from ansorlite.loops.visit import loads, stores
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Unary, Var
from ansorlite.te.ops import BINARY, UNARY
from ansorlite.te.traversal import free_vars, substitute, walk


def reference(function: Function, names: Sequence[str], target: Target) -> NDArray[np.float64]:
    """(1, len(names), NUM_FEATURES): the features of the main statements of the stages ``names``.

    These are all that a call runs; what is prepared before the first call is not among them.
    """
    (main,) = kernel_module(function).at(When.CALL)
    body = main.body
    found: dict[str, tuple[Store, tuple[For, ...], Mapping[Buffer, int]]] = {}
    _collect(body, (), {}, found)
    assert found.keys() == set(names)
    every = list(stores(body))
    asked = list(_asked(body, ()))
    facts = [replace(_facts(*found[name], every), fetched=sum(n for stage, n in asked if stage == name)) for name in names]
    return np.array([[assemble(each, target) for each in facts]], dtype=np.float64)


def _asked(stmt: Stmt, around: tuple[For, ...]) -> Iterator[tuple[str, int]]:
    """The stages for which something is asked for ahead, and how many lines in all, statement by statement."""
    if isinstance(stmt, Prefetch):
        yield stmt.stage, math.prod(_trips(around))
    for child in children(stmt):
        yield from _asked(child, (*around, stmt) if isinstance(stmt, For) else around)


def _trips(loops: Sequence[For]) -> list[int]:
    """The longest run of each: with every outer loop at its start."""
    starts = [{outer.var: np.zeros((), dtype=np.int64) for outer in loops[:position]} for position in range(len(loops))]
    return [int(_value(loop.extent, zero)) for loop, zero in zip(loops, starts, strict=True)]


def _collect(
    stmt: Stmt,
    around: tuple[For, ...],
    born: Mapping[Buffer, int],
    found: dict[str, tuple[Store, tuple[For, ...], Mapping[Buffer, int]]],
) -> None:
    """The main store of each stage, the loops around it, and how many of them are outside of the life of each buffer."""
    if isinstance(stmt, Store) and stmt.role in (Role.COMPUTE, Role.UPDATE):
        assert stmt.stage not in found
        found[stmt.stage] = (stmt, around, born)
    if isinstance(stmt, Alloc):
        born = {**born, stmt.buffer: len(around)}
    for child in children(stmt):
        _collect(child, (*around, stmt) if isinstance(stmt, For) else around, born, found)


def _home(store: Store, every: Sequence[Store]) -> tuple[Buffer, tuple[Expr, ...]]:
    """Where what ``store`` computes ends up: its own place, or where accumulators of their own are moved to."""
    for move in (each for each in every if each.role is Role.MOVE):
        for load in loads(move.value):
            if load.buffer is store.buffer and move.buffer is not store.buffer:
                # The move runs in loops of its own: put the store's indices of the registers in place of the move's.
                same = {a: b for a, b in zip(load.indices, store.indices, strict=True) if isinstance(a, Var)}
                return move.buffer, tuple(substitute(index, same) for index in move.indices)
    return store.buffer, store.indices


@dataclass(frozen=True, eq=False)
class _Around:
    loops: tuple[For, ...]
    trips: tuple[int, ...]
    born: Mapping[Buffer, int]
    written: frozenset[Buffer]


def _facts(store: Store, loops: tuple[For, ...], born: Mapping[Buffer, int], every: Sequence[Store]) -> StatementFacts:
    home = _home(store, every)
    trips = _trips(loops)
    around = _Around(loops, tuple(trips), born, frozenset(each.buffer for each in every))
    kinds = [loop.kind for loop in loops]
    update = store.role is Role.UPDATE
    target_vars = frozenset().union(*(free_vars(i) for i in store.indices)) if store.indices else frozenset()
    own = Load(store.buffer, store.indices, store.buffer.dtype)
    read = [node for node in walk(store.value) if isinstance(node, Load) and not (update and node is own)]
    accesses = [_access(around, load.buffer, load.indices, write=False) for load in read]
    accesses.append(_access(around, *home, write=True))
    leaves: dict[Expr, int] = {node: position for position, node in enumerate(read)}
    if update:
        leaves[own] = ALWAYS
    lanes = loops[-1].lanes if loops and kinds[-1] is LoopKind.VECTORIZED else 1

    return StatementFacts(
        store.stage,
        trips,
        [kind is LoopKind.PARALLEL for kind in kinds],
        [kind is LoopKind.UNROLLED for kind in kinds],
        [kind is LoopKind.VECTORIZED for kind in kinds],
        [update and depth >= born.get(store.buffer, 0) and loop.var not in target_vars for depth, loop in enumerate(loops)],
        lanes,
        update and store.buffer.scope is Scope.REGISTER,
        update,
        store.streamed,
        operations(store.value, leaves),
        tuple(accesses),
    )


def _access(around: _Around, buffer: Buffer, indices: tuple[Expr, ...], write: bool) -> AccessFacts:
    # A guarded read's index may stand outside of its buffer.
    widths = tuple([min(w, extent) for w in _widths(around, i)] for i, extent in zip(indices, buffer.shape, strict=True))
    moves = [any(_changes(around, depth, i) for i in indices) for depth in range(len(around.loops))]
    renewed = [depth < around.born.get(buffer, 0) for depth in range(len(around.loops))]
    stride = 0
    if around.loops and around.loops[-1].kind is LoopKind.VECTORIZED and around.loops[-1].lanes > 1:
        stride = _lane_stride(around, buffer, indices)
    item = dtypes.size(buffer.dtype)
    given = buffer.scope in (Scope.ARGUMENT, Scope.CONSTANT) and buffer not in around.written and len(buffer.shape) > 1
    return AccessFacts(
        widths, buffer.shape, item, buffer.shape[-1] * item if given else 0, moves, stride, write, renewed, buffer.pads
    )


def _widths(around: _Around, index: Expr) -> list[int]:
    """By depth: how far apart the least and the greatest index below each depth are, plus one, found by enumeration."""
    used = free_vars(index)
    result = []
    for depth in range(len(around.loops) + 1):
        grid: dict[Var, np.ndarray] = {}
        axis = count()
        inner = [i for i in range(depth, len(around.loops)) if around.loops[i].var in used]
        for position, loop in enumerate(around.loops):
            if position in inner:
                shape = [1] * len(inner)
                shape[next(axis)] = around.trips[position]
                grid[loop.var] = np.arange(around.trips[position]).reshape(shape)
            else:
                grid[loop.var] = np.zeros((), dtype=np.int64)
        values = np.asarray(_value(index, grid))
        alive = np.ones(values.shape, dtype=bool)
        for position in inner:
            alive = alive & (grid[around.loops[position].var] < _value(around.loops[position].extent, grid))
        shown = np.broadcast_to(values, alive.shape)[alive]
        result.append(int(shown.max() - shown.min()) + 1)
    return result


def _changes(around: _Around, depth: int, index: Expr) -> bool:
    """Whether ``index`` changes over the iterations of one loop, every other loop at its start."""
    loop = around.loops[depth]
    if loop.var not in free_vars(index):
        return False
    at = {other.var: np.zeros((), dtype=np.int64) for other in around.loops} | {loop.var: np.arange(around.trips[depth])}
    values = _value(index, at)
    return bool((values != values.flat[0]).any())


def _lane_stride(around: _Around, buffer: Buffer, indices: tuple[Expr, ...]) -> int:
    """0, 1 or 2: how the address moves from the first lane to the second."""
    lane = around.loops[-1].var
    at = {loop.var: np.zeros((), dtype=np.int64) for loop in around.loops}
    next_ = at | {lane: np.ones((), dtype=np.int64)}
    if not any(lane in free_vars(index) for index in indices):
        return 0
    step = sum(int(_value(i, next_) - _value(i, at)) * s for i, s in zip(indices, buffer.strides, strict=True))
    return 1 if step == 1 else 2


def _value(expr: Expr, at: dict[Var, np.ndarray]) -> np.ndarray:
    """An index expression on a grid of loop variables."""
    match expr:
        case Const():
            return np.asarray(expr.value)
        case Var():
            return at[expr]
        case Binary():
            return np.asarray(BINARY[expr.op].numpy(_value(expr.a, at), _value(expr.b, at)))
        case Unary():
            return np.asarray(UNARY[expr.op].numpy(_value(expr.a, at)))
        case Cast():
            return _value(expr.a, at).astype(dtypes.NUMPY[expr.dtype])
        case _:
            raise NotImplementedError(f"an index with {type(expr).__name__} in it")
