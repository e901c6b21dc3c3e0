"""The slow reference of GPUs' features: the same, read off the loops of one program, by enumerating its addresses.

It knows nothing of sketches, columns or regions. Tests hold ``extract`` against it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.alignment import aligned
from ansorlite.columns.tape import Number
from ansorlite.features.facts import ALWAYS, Operations
from ansorlite.features.gpu import GpuFacts, LaunchFacts, assemble_gpu
from ansorlite.features.gpu_addresses import given, loops_of, passes, product_in, sectors, trips_of
from ansorlite.features.gpu_bulk import BARRIERS, BulkCopy
from ansorlite.features.operations import operations
from ansorlite.features.reference import StoreCopy, changes, lane_stride, reach, store_copies
from ansorlite.loops.kernel_module import KernelModule, When
from ansorlite.loops.nodes import (
    THREADS,
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    If,
    Load,
    LoopKind,
    Role,
    Scope,
    Stmt,
    Store,
    block,
    children,
    statements,
)
from ansorlite.loops.phases import phases, threads_of
from ansorlite.loops.products import Product
from ansorlite.loops.runs import Runs, runs_of
from ansorlite.loops.visit import loads, map_outermost, map_stmt, stores, trips
from ansorlite.machine.gpu import BANKS, Gpu
from ansorlite.sketch.gpu_limits import OVERHEAD
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Select
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.traversal import free_vars

#: Scopes of what is in registers.
_OWN: Final = (Scope.PRIVATE, Scope.LOCAL, Scope.REGISTER)
#: Bytes that a copy which lands later has at least.
_WORD: Final = 4
#: Bytes that places and sizes of bulk copies are multiples of.
_BULK_UNIT: Final = 16
#: Words of a lane that one load for matrix units gets.
_LOADED: Final = 4
_EXPANDED: Final = (LoopKind.UNROLLED, LoopKind.VECTORIZED)


def gpu_reference(module: KernelModule, names: Sequence[str], gpu: Gpu) -> NDArray[np.float64]:
    """(1, len(names), len(GPU_NAMES)): the features of the main statements of the stages ``names``, which are all that a call
    runs, before what a CPU makes of them."""
    (main,) = module.at(When.CALL)
    found: dict[str, list[Number]] = {}
    for ahead in _launches(main.body):
        launch, places, slots = _in_place(ahead), dict(_places(ahead, 0)), _slots(ahead)
        first, bulk = _first(ahead), _in_bulk(ahead, gpu)
        here = [_Statement.of(launch, copy, first.get(copy.store.stage, copy), places, slots) for copy in _main(launch)]
        facts = LaunchFacts(
            prod(trips(each) for each in statements(launch) if isinstance(each, For) and each.kind is LoopKind.BLOCK),
            threads_of(launch),
            OVERHEAD + _ahead(here, gpu) + max(each.kept for each in here) + max(each.held for each in here),
            sum(aligned(b.nbytes) for b in _allocated(launch) if b.scope is Scope.SHARED),
        )
        for each in here:
            counted = each.facts()
            if each.store.buffer in bulk:
                runs = bulk[each.store.buffer]
                counted.copied_in_bulk(BulkCopy.of(runs.count, runs.nbytes, facts.threads))
            found[each.copy.store.stage] = list(assemble_gpu(facts, counted, gpu))
    assert set(found) == set(names)
    return np.array([[found[name] for name in names]], dtype=np.float64)


def _ahead(statements: Sequence[_Statement], gpu: Gpu) -> int:
    return 0 if gpu.async_copies else sum(each.ahead for each in statements)


def _launches(stmt: Stmt) -> Iterator[Stmt]:
    match stmt:
        case Block(body):
            for each in body:
                yield from _launches(each)
        case Alloc(body=inside):
            yield from _launches(inside)
        case _:
            yield stmt


def _in_place(launch: Stmt) -> Stmt:
    """``launch`` with what it copies ahead copied where it is needed: what is copied before a loop is what that begins with."""

    def moved(stmt: Stmt) -> Stmt | None:
        match stmt:
            case Block(body) if any(isinstance(each, Await) for each in body):
                return block(*(map_outermost(each, moved) for each in body if not isinstance(each, Await)))
            case Block(body) if any(map(_is_before, body)):
                return block(*(map_outermost(each, moved) for each in body if not _is_before(each)))
            case FetchGroup(If(_, fetching)) | FetchGroup(fetching):
                return map_stmt(fetching, at_once)
        return None

    def at_once(stmt: Stmt) -> Stmt | None:
        return replace(stmt, role=Role.COMPUTE) if isinstance(stmt, Store) else None

    return map_outermost(launch, moved)


def _first(launch: Stmt) -> dict[str, StoreCopy]:
    """By stage the copies that are made before a loop: its first ones. Those in it begin later."""

    def without(stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, Block) and any(isinstance(each, Await) for each in stmt.body):
            return block(*(each for each in stmt.body if not isinstance(each, FetchGroup)))
        return None

    before = map_outermost(launch, without)
    names = dict.fromkeys(store.stage for store in stores(before) if store.role is Role.FETCH)
    return {name: copy for name in names for copy in store_copies(before, name, (), {})}


def _in_bulk(launch: Stmt, gpu: Gpu) -> dict[Buffer, Runs]:
    """The runs that are copied in bulk to buffers to which nothing else is."""
    used = sum(aligned(b.nbytes) for b in _allocated(launch) if b.scope is Scope.SHARED)
    if not gpu.bulk_bytes or used + BARRIERS > gpu.block_shared:
        return {}
    algebra = IndexAlgebra()
    for loop in statements(launch):
        if isinstance(loop, For):
            algebra.bind(loop.var, loop.extent)
    found: dict[Buffer, Runs] = {}
    others: set[Buffer] = set()
    stored = {store.buffer for store in stores(launch)}
    for phase in phases(launch):
        runs = runs_of(phase, algebra)
        if runs is not None and _is_bulk(runs, stored, gpu):
            found[runs.store.buffer] = runs
        else:
            others |= {store.buffer for store in stores(phase)}
    return {buffer: runs for buffer, runs in found.items() if buffer not in others}


def _is_bulk(runs: Runs, stored: Collection[Buffer], gpu: Gpu) -> bool:
    store = runs.store
    assert isinstance(store.value, Load)
    outside = store.value.buffer.scope not in (*_OWN, Scope.SHARED) and store.value.buffer not in stored
    evenly = runs.aligned % _BULK_UNIT == 0 and runs.nbytes % _BULK_UNIT == 0
    long = runs.nbytes >= gpu.bulk_bytes and _in_order(store.buffer)
    return outside and evenly and long and store.role is Role.FETCH


def _in_order(buffer: Buffer) -> bool:
    """Whether its rows lie as they are: so few of a swizzled buffer that all have the same order."""
    return buffer.swizzle == 1 or buffer.shape[-2] <= max(1, BANKS // dtypes.size(buffer.dtype) // buffer.strides[-2])


def _is_before(stmt: Stmt) -> bool:
    return isinstance(stmt, FetchGroup) or (isinstance(stmt, For) and isinstance(stmt.body, FetchGroup))


def _slots(launch: Stmt) -> dict[Buffer, int]:
    """Of each ring."""
    return {store.buffer: store.buffer.shape[0] for store in stores(launch) if store.role is Role.FETCH}


def _allocated(stmt: Stmt) -> Iterator[Buffer]:
    return (each.buffer for each in statements(stmt) if isinstance(each, Alloc))


def _main(launch: Stmt) -> Iterator[StoreCopy]:
    for name in dict.fromkeys(store.stage for store in stores(launch) if store.role in (Role.COMPUTE, Role.UPDATE)):
        (copy,) = store_copies(launch, name, (), {})
        yield copy


@dataclass(frozen=True, eq=False)
class _Statement:
    """A main statement.

    Attributes:
        first: where it touches memory at first: of a copy that is made ahead, before the loop that it is made for.
        shared: where all threads see what it computes: how many loops are around that.
        leads: whether it is in the loops that its launch begins with, and is no epilogue.
        rings: the slots of each ring of the launch.
        product: what a matrix unit does of it.
    """

    copy: StoreCopy
    first: StoreCopy
    shared: int | None
    leads: bool
    rings: Mapping[Buffer, int]
    product: Product | None

    @staticmethod
    def of(
        launch: Stmt, copy: StoreCopy, first: StoreCopy, places: Mapping[Buffer, int], rings: Mapping[Buffer, int]
    ) -> _Statement:
        stage = copy.store.stage
        own = {store.buffer for store in stores(launch) if store.stage == stage}
        read = {load.buffer for store in stores(launch) if store.stage != stage for load in loads(store.value)}
        shared = next((places[buffer] for buffer in own & read if buffer.scope is Scope.SHARED), None)
        follows = any(load.buffer.scope in _OWN and load.buffer not in own for load in copy.reads)
        return _Statement(copy, first, shared, shared is None and not follows, rings, product_in(launch, copy.store))

    @property
    def store(self) -> Store:
        return self.copy.store

    @property
    def adds(self) -> bool:
        return self.store.role is Role.UPDATE

    @property
    def inside(self) -> list[int]:
        """By loop: iterations of one thread."""
        return [
            1 if loop.kind in (LoopKind.BLOCK, *THREADS) else trip
            for loop, trip in zip(self.copy.loops, self.copy.trips, strict=True)
        ]

    @property
    def around(self) -> int:
        """How many loops are around what is touched at a time."""
        if self.shared is not None:
            return self.shared
        return _first_thread(self.copy)

    @property
    def run(self) -> list[bool]:
        """By loop: whether it is of the innermost run of loops that are straight-line code."""
        found, going = [], True
        for loop, trip in zip(reversed(self.copy.loops), reversed(self.copy.trips), strict=True):
            going = going and (loop.kind in _EXPANDED or (trip == 1 and loop.kind is LoopKind.SERIAL))
            found.append(going)
        return found[::-1]

    @property
    def lanes(self) -> int:
        loops = self.copy.loops
        return loops[-1].lanes if loops and loops[-1].kind is LoopKind.VECTORIZED else 1

    @property
    def kept(self) -> int:
        """Registers of the sums that a thread keeps."""
        return self.accumulators * _words(self.store.buffer)

    @property
    def accumulators(self) -> int:
        buffer = self.store.buffer
        if not self.adds:
            return 0
        return buffer.size // buffer.shape[0] if buffer.scope is Scope.PRIVATE else buffer.size

    @property
    def held(self) -> int:
        """Registers of what it has at hand."""
        words = _words(self.store.buffer)
        if self.product is not None:
            return 0 if self.product.unit.from_shared else round(sum(words for words, _ in given(self.copy, self.product)))
        if self.adds and self.shared is None:
            space = frozenset[Expr]().union(*(free_vars(index) for index in self.store.indices))
            tile = [
                trip if flag and loop.var in space else 1
                for loop, flag, trip in zip(self.copy.loops, self.run, self.copy.trips, strict=True)
            ]
            return words * sum(self._moving(load, tile) for load in self._loads)
        if self.shared is None:
            return 2 * words * self.lanes
        return (words if self.adds else self._at_once) * prod(trips_of(self.copy, LoopKind.UNROLLED))

    @property
    def _at_once(self) -> int:
        """Registers of the elements that it copies at a time."""
        return -(-self.lanes * dtypes.size(self.store.buffer.dtype) // _WORD)

    @property
    def ahead(self) -> int:
        """Registers of what it has copied ahead where copies do not land later."""
        if self.shared is None or self.rings.get(self.store.buffer, 1) == 1:
            return 0
        return self._at_once * prod(self.inside[self.shared :]) // self.lanes

    def _moving(self, load: Load, counts: Sequence[int]) -> int:
        """The product of ``counts`` of the loops that move an address."""
        return prod(count for depth, count in enumerate(counts) if count > 1 and self._changes(load.indices, depth))

    def _changes(self, indices: Sequence[Expr], depth: int) -> bool:
        return self.copy.trips[depth] > 1 and any(changes([(self.copy, index)], depth) for index in indices)

    @property
    def _loads(self) -> list[Load]:
        return [load for load in self.copy.reads if load.buffer.scope not in _OWN]

    def facts(self) -> GpuFacts:
        counted: dict[Expr, int] = {load: number for number, load in enumerate(self.copy.reads)}
        if self.adds:
            counted[Load(self.store.buffer, self.store.indices, self.store.buffer.dtype)] = ALWAYS
        every = operations(self.store.value, counted).values()
        done = Operations(*(sum(getattr(each, name) for each in every) for name in Operations.__dataclass_fields__))
        steps = prod(self.inside)
        found = GpuFacts(self.store.stage, self.leads, steps, done, self.lanes, self.accumulators)
        if self.shared is not None:
            found.rounds, found.slots = prod(self.inside[: self.shared]), self.rings.get(self.store.buffer, 1)
            found.later = found.slots > 1 and self._copies
        elif self.leads:
            found.slots = max(self.rings.values(), default=1)
        if self.product is not None:
            unit = found.unit = self.product.unit
            times = prod(self.inside[: -len(loops_of(self.product))])
            for words, wavefronts in given(self.copy, self.product):
                found.given(times * (0 if unit.from_shared else -(-words // _LOADED)), times * words, times * wavefronts)
            return found
        for load, first in zip(self.copy.reads, self.first.reads, strict=True):
            if load.buffer.scope not in _OWN:
                self._count(found, load.buffer, load.indices, first.indices)
        if self.store.buffer.scope not in _OWN:
            self._count(found, self.store.buffer, self.store.indices, self.first.store.indices)
        return found

    @property
    def _copies(self) -> bool:
        """Whether all that it does is to copy words, or a constant where there is nothing."""
        value = self.store.value
        whole = self.lanes * dtypes.size(self.store.buffer.dtype) % _WORD == 0
        return whole and isinstance(value.then if isinstance(value, Select) else value, Load)

    def _count(self, found: GpuFacts, buffer: Buffer, indices: tuple[Expr, ...], first: tuple[Expr, ...]) -> None:
        stride = lane_stride(self.first, buffer, first) if self.lanes > 1 else 0
        if self.shared is not None:
            words = found.steps if stride else found.steps / self.lanes
        else:
            loops = enumerate(zip(self.inside, self.run, strict=True))
            words = prod(trip for depth, (trip, straight) in loops if not straight or self._changes(indices, depth))
        shared, item = buffer.scope is Scope.SHARED, dtypes.size(buffer.dtype)
        nbytes = item * self.lanes if stride == 1 else item
        by_warp = passes(self.first, buffer, first, nbytes) if shared else sectors(self.first, buffer, first)
        found.moved(words, stride, shared, self._box(buffer, first), by_warp)

    def _box(self, buffer: Buffer, first: tuple[Expr, ...]) -> int:
        """Bytes that are touched at a time, each time anew."""
        around = self.around if self.first is self.copy else _first_thread(self.first)
        spans = (reach(self.first, index, around) for index in first)
        widths = (min(high - low + 1, extent) for (low, high), extent in zip(spans, buffer.shape, strict=True))
        return dtypes.size(buffer.dtype) * prod(widths) * prod(self.inside[: self.around])


def _first_thread(copy: StoreCopy) -> int:
    """How many loops are around those over threads."""
    kinds = [loop.kind for loop in copy.loops]
    return next((depth for depth, kind in enumerate(kinds) if kind in THREADS), kinds.count(LoopKind.BLOCK))


def _places(stmt: Stmt, around: int) -> Iterator[tuple[Buffer, int]]:
    """How many loops are around each allocation; of a ring, around each of its slots' times."""
    if isinstance(stmt, Alloc):
        yield stmt.buffer, around
    if isinstance(stmt, FetchGroup):
        yield from ((store.buffer, around) for store in stores(stmt))
    for child in children(stmt):
        yield from _places(child, around + isinstance(stmt, For))


def _words(buffer: Buffer) -> int:
    return max(1, dtypes.size(buffer.dtype) // 4)
