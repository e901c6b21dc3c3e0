"""The slow reference of GPUs' features: the same, read off the loops of one program, by enumerating its addresses.

It knows nothing of sketches, columns or regions. Tests hold ``extract`` against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.alignment import aligned
from ansorlite.columns.tape import Number
from ansorlite.features.facts import ALWAYS, Operations
from ansorlite.features.gpu import GpuFacts, LaunchFacts, assemble_gpu
from ansorlite.features.operations import operations
from ansorlite.features.reference import StoreCopy, changes, lane_stride, reach, store_copies, value_of
from ansorlite.loops.kernel_module import KernelModule, When
from ansorlite.loops.nodes import (
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
from ansorlite.loops.phases import phases, trips
from ansorlite.loops.visit import loads, map_outermost, map_stmt, stores
from ansorlite.machine.gpu import Gpu
from ansorlite.sketch.gpu_limits import OVERHEAD
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Select, Var
from ansorlite.te.traversal import free_vars

#: Scopes of what is in registers.
_OWN: Final = (Scope.PRIVATE, Scope.LOCAL, Scope.REGISTER)
#: Bytes that a copy which lands later has at least.
_WORD: Final = 4
#: Threads of a warp; bytes of a sector of memory, and of all banks of shared memory together.
_WARP: Final = 32
_SECTOR: Final = 32
_BANKS: Final = 128
_EXPANDED: Final = (LoopKind.UNROLLED, LoopKind.VECTORIZED)


def gpu_reference(module: KernelModule, names: Sequence[str], gpu: Gpu) -> NDArray[np.float64]:
    """(1, len(names), len(GPU_NAMES)): the features of the main statements of the stages ``names``, which are all that a call
    runs, before what a CPU makes of them."""
    (main,) = module.at(When.CALL)
    found: dict[str, list[Number]] = {}
    for ahead in _launches(main.body):
        launch, places, slots = _in_place(ahead), dict(_places(ahead, 0)), _slots(ahead)
        here = [_Statement.of(launch, copy, places, slots) for copy in _main(launch)]
        facts = LaunchFacts(
            prod(trips(each) for each in statements(launch) if isinstance(each, For) and each.kind is LoopKind.BLOCK),
            max((trips(phase) for phase in phases(launch)), default=0),
            OVERHEAD + _ahead(here, gpu) + max(each.kept for each in here) + max(each.held for each in here),
            sum(aligned(b.nbytes) for b in _allocated(launch) if b.scope is Scope.SHARED),
        )
        for each in here:
            found[each.copy.store.stage] = list(assemble_gpu(facts, each.facts(), gpu))
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
        shared: where all threads see what it computes: how many loops are around that.
        leads: whether it is in the loops that its launch begins with, and is no epilogue.
        rings: the slots of each ring of the launch.
    """

    copy: StoreCopy
    shared: int | None
    leads: bool
    rings: Mapping[Buffer, int]

    @staticmethod
    def of(launch: Stmt, copy: StoreCopy, places: Mapping[Buffer, int], rings: Mapping[Buffer, int]) -> _Statement:
        stage = copy.store.stage
        own = {store.buffer for store in stores(launch) if store.stage == stage}
        read = {load.buffer for store in stores(launch) if store.stage != stage for load in loads(store.value)}
        shared = next((places[buffer] for buffer in own & read if buffer.scope is Scope.SHARED), None)
        follows = any(load.buffer.scope in _OWN and load.buffer not in own for load in copy.reads)
        return _Statement(copy, shared, shared is None and not follows, rings)

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
            1 if loop.kind in (LoopKind.BLOCK, LoopKind.THREAD) else trip
            for loop, trip in zip(self.copy.loops, self.copy.trips, strict=True)
        ]

    @property
    def around(self) -> int:
        """How many loops are around what is touched at a time."""
        if self.shared is not None:
            return self.shared
        kinds = [loop.kind for loop in self.copy.loops]
        return kinds.index(LoopKind.THREAD) if LoopKind.THREAD in kinds else kinds.count(LoopKind.BLOCK)

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
        if self.adds and self.shared is None:
            space = frozenset[Expr]().union(*(free_vars(index) for index in self.store.indices))
            tile = [
                trip if flag and loop.var in space else 1
                for loop, flag, trip in zip(self.copy.loops, self.run, self.copy.trips, strict=True)
            ]
            return words * sum(self._moving(load, tile) for load in self._loads)
        if self.shared is None:
            return 2 * words * self.lanes
        return (words if self.adds else self._at_once) * prod(_trips_of(self.copy, LoopKind.UNROLLED))

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
        for load in self._loads:
            self._count(found, load.buffer, load.indices)
        if self.store.buffer.scope not in _OWN:
            self._count(found, self.store.buffer, self.store.indices)
        return found

    @property
    def _copies(self) -> bool:
        """Whether all that it does is to copy words, or a constant where there is nothing."""
        value = self.store.value
        whole = self.lanes * dtypes.size(self.store.buffer.dtype) % _WORD == 0
        return whole and isinstance(value.then if isinstance(value, Select) else value, Load)

    def _count(self, found: GpuFacts, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        stride = lane_stride(self.copy, buffer, indices) if self.lanes > 1 else 0
        if self.shared is not None:
            words = found.steps if stride else found.steps / self.lanes
        else:
            loops = enumerate(zip(self.inside, self.run, strict=True))
            words = prod(trip for depth, (trip, straight) in loops if not straight or self._changes(indices, depth))
        shared, item = buffer.scope is Scope.SHARED, dtypes.size(buffer.dtype)
        touched = self._touched(buffer, indices, item * self.lanes if stride == 1 else item, shared)
        found.moved(words, stride, shared, self._box(buffer, indices), touched)

    def _touched(self, buffer: Buffer, indices: tuple[Expr, ...], nbytes: int, shared: bool) -> int:
        """Sectors, or passes over banks, that the first warp's load or store of ``nbytes`` by each thread takes."""
        thread: np.ndarray = np.arange(_WARP)
        at: dict[Var, np.ndarray] = {loop.var: np.zeros((), dtype=np.int64) for loop in self.copy.loops}
        there, left = thread < prod(_trips_of(self.copy, LoopKind.THREAD)), thread
        for loop, trip in zip(reversed(self.copy.loops), reversed(self.copy.trips), strict=True):
            if loop.kind is LoopKind.THREAD:
                at[loop.var], left = left % trip, left // trip
        for condition in self.copy.conditions:
            there = there & (value_of(condition, at) != 0)
        # From where the first thread is.
        places = [values - values[0] for values in (np.broadcast_to(value_of(each, at), (_WARP,)) for each in indices)]
        if buffer.swizzle > 1:
            chunk = 16 // dtypes.size(buffer.dtype)
            turn = places[-2] // max(1, 8 * chunk // buffer.strides[-2]) % buffer.swizzle
            places[-1] = (places[-1] // chunk ^ turn) * chunk + places[-1] % chunk
        address = sum(place * by for place, by in zip(places, buffer.strides, strict=True)) * dtypes.size(buffer.dtype)
        touched = [(int(number), int(byte)) for number, byte, one in zip(thread, address + 0 * thread, there, strict=True) if one]
        if not shared:
            return len({byte // _SECTOR for _, byte in touched})
        wide = next(size for size in (_WORD, 2 * _WORD, 4 * _WORD) if size >= min(nbytes, 4 * _WORD))
        pieces = {(number * wide // _BANKS, byte // wide) for number, byte in touched}
        deep = Counter((group, piece % (_BANKS // wide)) for group, piece in pieces)
        return sum(max(deep[group, bank] for group, bank in deep if group == each) for each in {group for group, _ in deep})

    def _box(self, buffer: Buffer, indices: tuple[Expr, ...]) -> int:
        """Bytes that are touched at a time, each time anew."""
        spans = (reach(self.copy, index, self.around) for index in indices)
        widths = (min(high - low + 1, extent) for (low, high), extent in zip(spans, buffer.shape, strict=True))
        return dtypes.size(buffer.dtype) * prod(widths) * prod(self.inside[: self.around])


def _trips_of(copy: StoreCopy, kind: LoopKind) -> list[int]:
    """Of the loops of one kind."""
    return [trip for loop, trip in zip(copy.loops, copy.trips, strict=True) if loop.kind is kind]


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
