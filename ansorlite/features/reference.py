"""The slow reference: the same features, read off the loops that run, of one program, by enumerating its addresses.

It knows nothing of sketches, columns or regions. Tests hold ``extract`` against it.

A loop whose last iteration stands apart, behind it (``loops/peel.py``), is one loop: its statement is that of the other
iterations, and the last one is counted and touches memory as any.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, takewhile

import numpy as np
from numpy.typing import NDArray

from ansorlite.alignment import CACHE_LINE
from ansorlite.features.assemble import program_features
from ansorlite.features.facts import ALWAYS, AccessFacts, MatrixFacts, StatementFacts
from ansorlite.features.neighbours import Location, with_neighbours
from ansorlite.features.operations import operations
from ansorlite.features.unfused import unfused
from ansorlite.loops.kernel_module import KernelModule, When
from ansorlite.loops.matrix_tile import match
from ansorlite.loops.nodes import Alloc, Block, Buffer, For, If, Load, LoopKind, Prefetch, Role, Scope, Stmt, Store, children
from ansorlite.loops.visit import loads, stores, trips
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Unary, Var
from ansorlite.te.index.form import form_of
from ansorlite.te.ops import BINARY, UNARY
from ansorlite.te.traversal import free_vars, substitute, walk


def reference(module: KernelModule, names: Sequence[str], target: Target) -> NDArray[np.float64]:
    """(1, len(names), features): the features of the main statements of the stages ``names``.

    These are all that a call runs; what is prepared before the first call is not among them.
    """
    (main,) = module.at(When.CALL)
    body = unfused(main.body)
    found = [list(store_copies(body, name, (), {})) for name in names]
    every = list(stores(body))
    assert {store.stage for store in every if _is_main(store)} == set(names)
    asked = list(_asked(body, ()))
    facts = [
        replace(
            _facts(copies, every),
            fetched=sum(lines for stage, lines in asked if stage == name),
            needed=_needed(copies[0]),
            matrix=_matrix(copies[0], target),
            teams=_teams(copies[0]),
        )
        for name, copies in zip(names, found, strict=True)
    ]
    return np.array([program_features(facts, target)], dtype=np.float64)


def _matrix(copy: StoreCopy, target: Target) -> MatrixFacts | None:
    """What the emitter finds that matrix units do of it."""
    for loop in copy.loops:
        tile = match(loop, target)
        if tile is not None and tile.lane.body is copy.store:
            around, outer = (math.prod(map(trips, loops)) for loops in (tile.around, tile.outer))
            return MatrixFacts(1, around, outer, *map(trips, (tile.row, tile.lane, tile.words)))
    return None


def _teams(copy: StoreCopy) -> dict[Hashable, int]:
    """The outermost parallel loop around a statement, if there are several iterations of all of them."""
    found = [(loop, trip) for loop, trip in zip(copy.loops, copy.trips, strict=True) if loop.kind is LoopKind.PARALLEL]
    return {found[0][0]: 1} if math.prod(trip for _, trip in found) > 1 else {}


def _needed(copy: StoreCopy) -> float:
    """The share of iterations in which no condition says that they change nothing."""
    if not copy.no_ops or copy.store.role is not Role.UPDATE:
        return 1.0
    used = frozenset().union(*map(free_vars, copy.no_ops))
    walked = [(loop, trip) for loop, trip in zip(copy.loops, copy.trips, strict=True) if loop.var in used]
    grid = np.meshgrid(*(np.arange(trip) for _, trip in walked), indexing="ij", sparse=True)
    at = {loop.var: values for (loop, _), values in zip(walked, grid, strict=True)}
    alive = np.ones([trip for _, trip in walked], dtype=bool)
    for loop, _ in walked:
        alive = alive & (at[loop.var] < value_of(loop.extent, at))
    kept = alive
    for condition in copy.no_ops:
        kept = kept & value_of(condition, at)
    return float(kept.sum() / alive.sum())


def _asked(stmt: Stmt, around: tuple[For, ...]) -> Iterator[tuple[str, int]]:
    """The stages for which something is asked for ahead, and how many lines in all, statement by statement."""
    if isinstance(stmt, Prefetch):
        yield stmt.stage, math.prod(_trips(around))
    for child in children(stmt):
        yield from _asked(child, (*around, stmt) if isinstance(stmt, For) else around)


def _trips(loops: Sequence[For]) -> tuple[int, ...]:
    """The longest run of each: with every outer loop at its start."""
    starts = [{outer.var: np.zeros((), dtype=np.int64) for outer in loops[:position]} for position in range(len(loops))]
    return tuple(int(value_of(loop.extent, zero)) for loop, zero in zip(loops, starts, strict=True))


@dataclass(frozen=True, eq=False)
class StoreCopy:
    """The main statement of a stage, or the same of a last iteration that stands apart.

    Attributes:
        loops: around it; also those whose last iteration it is.
        last: the loops whose last iteration it is.
        born: how many loops are outside of the life of each buffer.
        conditions: under which it runs.
        no_ops: conditions without which it changes nothing, and may run.
    """

    store: Store
    loops: tuple[For, ...]
    last: frozenset[For]
    born: Mapping[Buffer, int]
    conditions: tuple[Expr, ...]
    no_ops: tuple[Expr, ...]

    @cached_property
    def reads(self) -> list[Load]:
        own = Load(self.store.buffer, self.store.indices, self.store.buffer.dtype)
        update = self.store.role is Role.UPDATE
        return [node for node in walk(self.store.value) if isinstance(node, Load) and not (update and node is own)]

    @cached_property
    def trips(self) -> tuple[int, ...]:
        """Of each loop, in the longest run: with every outer loop at its start."""
        return _trips(self.loops)


def _is_main(store: Store) -> bool:
    return store.role in (Role.COMPUTE, Role.UPDATE, Role.FETCH)


def store_copies(
    stmt: Stmt,
    name: str,
    around: tuple[For, ...],
    born: Mapping[Buffer, int],
    last: frozenset[For] = frozenset(),
    conditions: tuple[Expr, ...] = (),
    no_ops: tuple[Expr, ...] = (),
) -> Iterator[StoreCopy]:
    """The main statement of a stage, and then those of last iterations that stand apart."""
    if isinstance(stmt, Store) and _is_main(stmt) and stmt.stage == name:
        yield StoreCopy(stmt, around, last, born, conditions, no_ops)
    if isinstance(stmt, Alloc):
        born = {**born, stmt.buffer: len(around)}
    if isinstance(stmt, For):
        around = (*around, stmt)
    if isinstance(stmt, If):
        conditions, no_ops = (conditions, (*no_ops, stmt.cond)) if stmt.no_op else ((*conditions, stmt.cond), no_ops)
    for child in children(stmt):
        found = list(store_copies(child, name, around, born, last, conditions, no_ops))
        yield from found
        if found and isinstance(stmt, Block) and isinstance(child, For):
            # What stands behind a loop and computes the same is its last iteration.
            around, last = (*around, child), last | {child}


def _home(store: Store, every: Sequence[Store]) -> tuple[Buffer, tuple[Expr, ...]]:
    """Where what ``store`` computes ends up: its own place, or where accumulators of their own are moved to."""
    for move in (each for each in every if each.role is Role.MOVE):
        for load in loads(move.value):
            if load.buffer is store.buffer and move.buffer is not store.buffer:
                # The move runs in loops of its own: put the store's indices of the registers in place of the move's.
                same = {a: b for a, b in zip(load.indices, store.indices, strict=True) if isinstance(a, Var)}
                return move.buffer, tuple(substitute(index, same) for index in move.indices)
    return store.buffer, store.indices


def _facts(copies: Sequence[StoreCopy], every: Sequence[Store]) -> StatementFacts:
    main, *apart = copies
    store = main.store
    ended = frozenset(each for copy in apart for each in copy.last)
    trips = [trip + (loop in ended) for loop, trip in zip(main.loops, main.trips, strict=True)]
    written = {each.buffer: each.stage for each in every}
    kinds, straight = [loop.kind for loop in main.loops], _straight(main.loops)
    update = store.role is Role.UPDATE
    target_vars = frozenset().union(*(free_vars(i) for i in store.indices)) if store.indices else frozenset()
    # Of a loop of two iterations, one of which stands apart, no index has the variable.
    at = [[(copy, copy.store.indices[dim]) for copy in copies] for dim in range(len(store.indices))]
    split = {depth for depth, loop in enumerate(main.loops) if loop in ended and any(changes(dim, depth) for dim in at)}
    assert all(copy.last and len(copy.reads) == len(main.reads) for copy in apart)
    accesses = [
        _access([(copy, copy.reads[position].indices) for copy in copies], load.buffer, written, write=False)
        for position, load in enumerate(main.reads)
    ]
    accesses = [*with_neighbours(accesses, [Location(read.buffer, tuple(map(form_of, read.indices))) for read in main.reads])]
    homes = [_home(copy.store, every) for copy in copies]
    accesses.append(_access([(c, at) for c, (_, at) in zip(copies, homes, strict=True)], homes[0][0], written, write=True))
    leaves: dict[Expr, int] = {node: position for position, node in enumerate(main.reads)}
    if update:
        leaves[Load(store.buffer, store.indices, store.buffer.dtype)] = ALWAYS
    lanes = main.loops[-1].lanes if main.loops and kinds[-1] is LoopKind.VECTORIZED else 1

    return StatementFacts(
        store.stage,
        trips,
        [kind is LoopKind.PARALLEL for kind in kinds],
        [kind is LoopKind.UNROLLED and depth >= straight for depth, kind in enumerate(kinds)],
        [kind is LoopKind.VECTORIZED for kind in kinds],
        [
            update and depth >= main.born.get(store.buffer, 0) and loop.var not in target_vars and depth not in split
            for depth, loop in enumerate(main.loops)
        ],
        lanes,
        (update and store.buffer.scope is Scope.REGISTER) * (1 + (homes[0][0] is store.buffer)),
        update,
        store.streamed,
        operations(store.value, leaves),
        tuple(accesses),
    )


def _straight(loops: Sequence[For]) -> int:
    """The depth inside of the innermost loop whose ends are computed: its conditions speak of what code does not know."""
    unknown = {loop.var for loop in loops if loop.kind is not LoopKind.UNROLLED}
    return max((depth + 1 for depth, loop in enumerate(loops) if any(used & unknown for used in _ends(loop))), default=0)


def _ends(loop: For) -> Iterator[frozenset[Var]]:
    """What each condition depends on that says which of a loop's iterations change nothing."""
    body = loop.body
    while isinstance(body, If) and body.no_op:
        if loop.var in (used := free_vars(body.cond)):
            yield used - {loop.var}
        body = body.body


def _access(
    where: Sequence[tuple[StoreCopy, tuple[Expr, ...]]], buffer: Buffer, written: Mapping[Buffer, str], write: bool
) -> AccessFacts:
    """One access, by the indices that it has in each of the copies; ``written``: by which stage each buffer is."""
    (main, indices), depths = where[0], range(len(where[0][0].loops))
    # A guarded read's index may stand outside of its buffer.
    dims = [[(copy, at[dim]) for copy, at in where] for dim in range(len(buffer.shape))]
    widths = tuple([min(w, extent) for w in _widths(dim)] for dim, extent in zip(dims, buffer.shape, strict=True))
    moves = [any(changes(dim, depth) for dim in dims) for depth in depths]
    renewed = [depth < main.born.get(buffer, 0) for depth in depths]
    stride = lane_step = 0
    if main.loops and main.loops[-1].kind is LoopKind.VECTORIZED and main.loops[-1].lanes > 1:
        stride = lane_stride(main, buffer, indices)
        if stride == 2 and all(form_of(at) is not None for at in indices if main.loops[-1].var in free_vars(at)):
            lane_step = _first_step(main, buffer, indices)
    item = dtypes.size(buffer.dtype)
    held = not write and buffer.scope is Scope.REGISTER
    own = sum(renewed)
    unaligned = not write and stride > 0 and any(_unaligned(where, buffer, depth) for depth in depths[own:-1])
    producer = written.get(buffer, "")
    constant = not write and buffer.scope in (Scope.CONSTANT, Scope.PREPARED)
    facts = AccessFacts(widths, buffer.shape, item, moves, stride, write, renewed, buffer.pads, held)
    return replace(facts, lane_step=lane_step, producer=producer, constant=constant, unaligned=unaligned)


def _shared(a: StoreCopy, b: StoreCopy) -> int:
    """How many loops are around both."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(a.loops, b.loops, strict=False)))


def _widths(where: Sequence[tuple[StoreCopy, Expr]]) -> list[int]:
    """By depth: how far apart the least and the greatest index below each depth are, plus one, found by enumeration."""
    main = where[0][0]
    result = []
    for depth in range(len(main.loops) + 1):
        below = [reach(copy, index, depth) for copy, index in where if copy is main or depth < _shared(main, copy)]
        result.append(max(high for _, high in below) - min(low for low, _ in below) + 1)
    return result


def reach(copy: StoreCopy, index: Expr, depth: int) -> tuple[int, int]:
    """The least and the greatest index below ``depth``."""
    used = free_vars(index)
    grid: dict[Var, np.ndarray] = {}
    axis = count()
    inner = [i for i in range(depth, len(copy.loops)) if copy.loops[i].var in used]
    for position, loop in enumerate(copy.loops):
        if position in inner:
            shape = [1] * len(inner)
            shape[next(axis)] = copy.trips[position]
            grid[loop.var] = np.arange(copy.trips[position]).reshape(shape)
        else:
            grid[loop.var] = np.zeros((), dtype=np.int64)
    values = np.asarray(value_of(index, grid))
    alive = np.ones(values.shape, dtype=bool)
    for position in inner:
        alive = alive & (grid[copy.loops[position].var] < value_of(copy.loops[position].extent, grid))
    for condition in copy.conditions:
        alive = alive & value_of(condition, grid)
    shown = np.broadcast_to(values, alive.shape)[alive]
    return int(shown.min()), int(shown.max())


def changes(where: Sequence[tuple[StoreCopy, Expr]], depth: int) -> bool:
    """Whether an index changes over the iterations of one loop, every other loop at its start."""
    main, index = where[0]
    loop = main.loops[depth]
    zero = {other.var: np.zeros((), dtype=np.int64) for copy, _ in where for other in copy.loops}
    values = np.asarray(value_of(index, zero | {loop.var: np.arange(main.trips[depth])}))
    apart = [value_of(at, zero) for copy, at in where[1:] if copy.last == {loop}]
    return bool((values != values.flat[0]).any()) or any(value != values.flat[0] for value in apart)


def _unaligned(where: Sequence[tuple[StoreCopy, tuple[Expr, ...]]], buffer: Buffer, depth: int) -> bool:
    """Whether an address moves from the first iteration of a loop to the second by no whole vectors or cache lines."""
    main, indices = where[0]
    zero = {other.var: np.zeros((), dtype=np.int64) for copy, _ in where for other in copy.loops}
    whole = min(main.loops[-1].lanes, CACHE_LINE // dtypes.size(buffer.dtype))

    def address(indices: tuple[Expr, ...], at: dict[Var, np.ndarray]) -> int:
        return sum(int(value_of(i, at)) * s for i, s in zip(indices, buffer.strides, strict=True))

    if main.trips[depth] > 1:
        second = [address(indices, zero | {main.loops[depth].var: np.ones((), dtype=np.int64)})]
    else:
        second = [address(at, zero) for copy, at in where[1:] if copy.last == {main.loops[depth]}]
    return any((at - address(indices, zero)) % whole for at in second)


def lane_stride(copy: StoreCopy, buffer: Buffer, indices: tuple[Expr, ...]) -> int:
    """0, 1 or 2: how the address moves from the first lane to the second."""
    if not any(copy.loops[-1].var in free_vars(index) for index in indices):
        return 0
    return 1 if _first_step(copy, buffer, indices) == 1 else 2


def _first_step(copy: StoreCopy, buffer: Buffer, indices: tuple[Expr, ...]) -> int:
    """Elements from the first lane to the second."""
    at = {loop.var: np.zeros((), dtype=np.int64) for loop in copy.loops}
    next_ = at | {copy.loops[-1].var: np.ones((), dtype=np.int64)}
    return sum(int(value_of(i, next_) - value_of(i, at)) * s for i, s in zip(indices, buffer.strides, strict=True))


def value_of(expr: Expr, at: dict[Var, np.ndarray]) -> np.ndarray:
    """An index expression, or a condition, on a grid of loop variables."""
    match expr:
        case Const():
            return np.asarray(expr.value)
        case Var():
            return at[expr]
        case Binary():
            return np.asarray(BINARY[expr.op].numpy(value_of(expr.a, at), value_of(expr.b, at)))
        case Unary():
            return np.asarray(UNARY[expr.op].numpy(value_of(expr.a, at)))
        case Cast():
            return value_of(expr.a, at).astype(dtypes.NUMPY[expr.dtype])
        case _:
            raise NotImplementedError(f"an index with {type(expr).__name__} in it")
