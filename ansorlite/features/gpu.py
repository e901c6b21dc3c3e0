"""Features of programs for GPUs: what a launch has, and what each of its statements costs a thread and a block.

They come from the numbers of the schedule alone, of one row or of a population; ``gpu_reference.py`` reads the same off loops.

A statement is a stage's main store, as in ``facts.py``. Those of a thread's registers that are no memory count as none. A load
whose address stays while straight-line code goes on is one load; not so in copies that threads deal out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ansorlite.analysis.access import Access, accesses
from ansorlite.columns.arithmetic import (
    both,
    ceil,
    either,
    equal,
    every,
    floor,
    log2,
    maximum,
    minimum,
    modulo,
    negated,
    product,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.columns.warp import Digit, touched
from ansorlite.features.facts import AccessFacts, Operations, StatementFacts
from ansorlite.features.gpu_bulk import BulkCopy, bulk_copy
from ansorlite.features.gpu_lanes import WarpLanes, own_forms, request_bytes
from ansorlite.features.nest_view import distinct
from ansorlite.features.population import NestStatements
from ansorlite.machine.gpu import Gpu
from ansorlite.machine.matrix import (
    HELD_ACROSS,
    HELD_DOWN,
    LANES_DOWN,
    PIECE_BYTES,
    WORDS_OF_COLUMNS,
    WORDS_OF_ROWS,
    MatrixUnit,
)
from ansorlite.schedule.fusing import runs
from ansorlite.schedule.nest import Attached, Loop, Multiplied, Nest, Program
from ansorlite.schedule.padding import strides
from ansorlite.sketch.gpu_limits import accumulators, blocks, factor_words, first_thread, registers, rounds, shared_bytes, threads
from ansorlite.te import dtypes
from ansorlite.te.expr import Read, Reduce, Select
from ansorlite.te.index.form import Affine
from ansorlite.te.tensor import Tensor

#: Of each statement. Magnitudes are log2(1 + x); what is of the launch, all of its statements have.
GPU_NAMES: Final = (
    "launch",  # flag: of the statement whose loops a launch is
    "blocks",
    "threads",  # of a block
    "registers",  # of a thread, estimated
    "shared",  # bytes of a block
    "resident",  # blocks that a multiprocessor runs at once
    "last_wave",  # the share of multiprocessors that the blocks of the last wave keep busy, plain
    "steps",  # of one thread
    "operations",  # of one thread: additions and products; a product that is added up is one
    "slow",  # divisions, exponentials and such
    "bytes",  # that a block reads and writes of memory
    "requests",  # loads and stores of memory of one thread
    "sectors",  # pieces of 32 bytes that those of a warp touch
    "shared_loads",  # of one thread, with its stores
    "shared_words",  # elements that these move
    "wavefronts",  # passes over the banks of shared memory that those of a warp take
    "lanes",  # of vectors
    "accumulators",  # of one thread
    "matrix",  # products of one thread that matrix units compute, in operations of a thread that take as long
    "rounds",  # how often a block makes its part of what all threads see
    "stages",  # slots of the ring that the statement stores to, or of the launch's ring
    "later",  # flag: of copies that land later, past the registers
)
#: Bytes of a word, and words that a lane gets by one ``ldmatrix``.
_WORD: Final = 4
_WORDS_OF_LOADS: Final = 4
#: Column of each name.
GPU_COLUMN: Final = {name: position for position, name in enumerate(GPU_NAMES)}


@dataclass(frozen=True)
class LaunchFacts:
    """What a launch has, of one program or of a population: threads and shared bytes are a block's, registers a thread's."""

    blocks: Number
    threads: Number
    registers: Number
    shared: Number


@dataclass
class GpuFacts:
    """What one statement costs. Both ways to features end here.

    Attributes:
        leads: whether its loops are those of the launch.
        steps: of one thread, those that a condition leaves out included.
        operations: of one step.
        accumulators: elements of a sum that one thread keeps.
        unit: the matrix unit that computes its products; ``None``: threads do.
        rounds, slots, later: as the features, in numbers; ``later``: whether it would be where copies can.
        nbytes, requests, sectors, shared_loads, shared_words, wavefronts: as the features, in numbers.
    """

    name: str
    leads: bool
    steps: Number
    operations: Operations
    lanes: Number
    accumulators: Number
    unit: MatrixUnit | None = None
    rounds: Number = 1
    slots: Number = 1
    later: Number = 0
    nbytes: Number = field(default=0)
    requests: Number = field(default=0)
    shared_loads: Number = field(default=0)
    shared_words: Number = field(default=0)
    sectors: Number = field(default=0)
    wavefronts: Number = field(default=0)

    def moved(self, words: Number, stride: Number, shared: bool, nbytes: Number, touched: Number) -> None:
        """Counts what a thread loads, or stores: ``words`` elements, in vectors where their ``stride`` is 1."""
        self.loaded(where(equal(stride, 1), words / self.lanes, words), words, shared, nbytes, touched)

    def loaded(self, loads: Number, words: Number, shared: bool, nbytes: Number, touched: Number) -> None:
        """Counts ``loads`` of so many words in all; ``touched``: sectors, or passes over banks, of a warp's first one."""
        if shared:
            self.given(loads, words, loads * touched)
        else:
            self.requests, self.nbytes = self.requests + loads, self.nbytes + nbytes
            self.sectors = self.sectors + loads * touched

    def copied_in_bulk(self, bulk: BulkCopy) -> None:
        """Counts what it copies as bulk copies, where it is such: runs that threads ask for, and next to nothing else."""
        there = bulk.there
        self.steps = where(there, self.rounds * bulk.requests, self.steps)
        self.requests = where(there, self.rounds * bulk.requests, self.requests)
        self.sectors = where(there, self.rounds * bulk.sectors, self.sectors)
        self.shared_loads, self.shared_words = where(there, 0, self.shared_loads), where(there, 0, self.shared_words)
        self.wavefronts = where(there, self.rounds * bulk.wavefronts, self.wavefronts)
        self.later = either(there, self.later)

    def given(self, loads: Number, words: Number, wavefronts: Number) -> None:
        """Counts ``loads`` of so many words in all, from shared memory or to it."""
        self.shared_loads, self.shared_words = self.shared_loads + loads, self.shared_words + words
        self.wavefronts = self.wavefronts + wavefronts


def gpu_features(program: Program, gpu: Gpu) -> list[Number]:
    """The features of all statements, one after another."""
    return [
        number
        for nest in program.nests
        if not nest.prepared
        for facts in _statements(NestStatements(nest, program), nest, gpu)
        for number in assemble_gpu(_launch(program, nest, gpu), facts, gpu)
    ]


def gpu_statements(program: Program) -> list[str]:
    """The names of the statements, in the order of their features."""
    return [f.name for nest in program.nests if not nest.prepared for f in _statements(NestStatements(nest, program), nest, None)]


def assemble_gpu(launch: LaunchFacts, facts: GpuFacts, gpu: Gpu) -> Iterator[Number]:
    """The features of a statement."""
    count, block, words, nbytes = launch.blocks, maximum(launch.threads, 1), launch.registers, launch.shared
    whole = ceil(block / gpu.warp) * gpu.warp
    fitting = minimum(floor(gpu.registers / (words * whole)), floor(gpu.shared / maximum(nbytes, 1)))
    resident = maximum(minimum(minimum(fitting, floor(gpu.threads / whole)), gpu.blocks), 1)
    waves = ceil(count / gpu.processors)
    yield int(facts.leads)
    for number in (count, block, words, nbytes, resident):
        yield _log(number)
    yield count / (waves * gpu.processors)
    total = facts.operations
    plain, slow = max(total.cheap, total.mul, 1), total.div + total.math + total.convert + total.dot
    moved = (facts.nbytes, facts.requests, facts.sectors, facts.shared_loads, facts.shared_words, facts.wavefronts)
    own = facts.steps if facts.unit is None else 0
    for number in (facts.steps, own * plain, own * slow, *moved):
        yield _log(number)
    yield log2(facts.lanes)
    yield _log(facts.accumulators)
    yield 0 if facts.unit is None else _log(facts.steps * gpu.lanes / _unit_here(facts.unit, gpu).rate)
    yield _log(facts.rounds)
    yield _log(facts.slots)
    yield facts.later if gpu.async_copies else 0


def _unit_here(unit: MatrixUnit, gpu: Gpu) -> MatrixUnit:
    """The GPU's own of that name, whose rate is that of its data sheet."""
    return next((each for each in gpu.matrix if each.name == unit.name), unit)


def _launch(program: Program, nest: Nest, gpu: Gpu) -> LaunchFacts:
    return LaunchFacts(blocks(nest), threads(nest), registers(nest, gpu), shared_bytes(program, nest))


def _statements(view: NestStatements, nest: Nest, gpu: Gpu | None) -> Iterator[GpuFacts]:
    """``gpu``: by which copies are made in bulk, if it has such; ``None``: by none."""
    for stage in nest.attached:
        if stage.prepared:
            continue
        if stage.nest is not None:
            yield from _statements(NestStatements(stage.nest, view.program, view.around_region(stage)), stage.nest, gpu)
        elif equal(stage.dealt, 0) == 1:
            yield _in_loops(view, nest, stage.tensor, view.attached(stage))
        else:
            found = _dealt(view, nest, stage)
            bulk = None if gpu is None else bulk_copy(view, stage, gpu)
            if bulk is not None:
                found.copied_in_bulk(bulk)
            yield found
    yield _in_loops(view, nest, nest.anchor, view.anchor())
    if nest.epilogue is not None:
        yield _in_loops(view, nest, nest.epilogue, view.epilogue())


def _in_loops(view: NestStatements, nest: Nest, tensor: Tensor, facts: StatementFacts) -> GpuFacts:
    """A statement in the loops of a nest, which threads run."""
    loops = _loops(view)
    bound = [loop.bound for loop in loops] + [None] * (len(facts.trips) - len(loops))
    inside = [where(flag is None, trip, 1) for flag, trip in zip(bound, facts.trips, strict=True)]
    # The loops around what the threads do at once.
    outside = set(nest.loops[first_thread(nest) :])
    around = sum(loop not in outside for loop in loops)
    run: list[Number] = [1]
    for flag, unrolled, vector, trip in zip(
        reversed(bound), reversed(facts.unrolled), reversed(facts.vector), reversed(facts.trips), strict=True
    ):
        written = where(unrolled, 1, where(vector, 1, equal(trip, 1)))
        run.append(both(run[-1], written) if flag is None else 0)
    run = run[:0:-1]
    adds = isinstance(tensor.body, Reduce)
    own = accumulators(nest) if adds and tensor is nest.anchor else int(adds)
    by = nest.multiplied if tensor is nest.anchor else None
    # What a unit does is a whole tile, no vector.
    lanes = facts.lanes if by is None else 1
    found = GpuFacts(tensor.name, tensor is nest.anchor, product([1, *inside]), _all(facts), lanes, own)

    def words(access: AccessFacts) -> Number:
        again = (
            where(both(straight, negated(moves)), 1, trip)
            for straight, moves, trip in zip(run, access.moves, inside, strict=True)
        )
        return product([1, *again])

    warp = WarpLanes.in_loops(view, nest, tensor)

    def count(access: AccessFacts, of: Tensor, forms: Sequence[Affine | None], shared: bool) -> None:
        nbytes = _box(access, inside[:around], around)
        found.moved(words(access), access.lane_stride, shared, nbytes, _touched(warp, found, access, of, forms, shared))

    places = _places(nest)
    if tensor is nest.anchor and nest.ring is not None:
        found.slots = nest.ring.stages
    if by is not None:
        found.unit = by.unit
        _give_factors(view, by, found)
        return found
    for access, of in _reads(tensor, facts):
        if access.tensor is not nest.anchor:
            count(of, access.tensor, access.dims, places.get(access.tensor, False))
    if tensor is nest.anchor and (nest.epilogue is not None or adds):
        # What is added up, or is there for an epilogue, is in registers.
        return found
    count(facts.accesses[-1], tensor, own_forms(tensor), places.get(tensor, False))
    return found


def _dealt(view: NestStatements, nest: Nest, stage: Attached) -> GpuFacts:
    """A stage that the threads of a block compute together, in shared memory."""
    tensor, facts, depth = stage.tensor, view.attached(stage), len(_loops(view))
    around = [
        where(flag, loop.trip, 1) if loop.bound is None else 1
        for loop, flag in zip(view.loops, view.outside(stage.at), strict=True)
    ]
    lanes: Number = stage.lanes
    if isinstance(tensor.body, Reduce):
        axis = stage.lane_axis if stage.lane_axis is not None and stage.lane_axis.reduce else tensor.reduce_axes[-1]
        groups = maximum(floor(stage.dealt / lanes), 1)
        terms = (ceil(view.extent(each) / lanes) if each is axis else view.extent(each) for each in tensor.reduce_axes)
        steps = product([ceil(product([1, *stage.lengths]) / groups), *terms])
        lanes = 1
    else:
        steps = rounds(stage) * lanes
    steps = product([steps, *around])
    found = GpuFacts(tensor.name, False, steps, _all(facts), lanes, int(bool(tensor.reduce_axes)))
    found.rounds, found.slots, found.later = product([1, *around]), stage.slots, _later(stage)
    places, warp = _places(nest), WarpLanes.dealt(view, stage)
    for access, of in _reads(tensor, facts):
        if tensor.reduce_axes:
            of = replace(of, lane_stride=0)
        words, shared = where(equal(of.lane_stride, 0), steps / lanes, steps), places.get(access.tensor, False)
        found.moved(
            words, of.lane_stride, shared, _box(of, around, depth), _touched(warp, found, of, access.tensor, access.dims, shared)
        )
    if not tensor.reduce_axes:
        stored = facts.accesses[-1]
        found.moved(steps, stored.lane_stride, True, 0, _touched(warp, found, stored, tensor, own_forms(tensor), True))
    return found


def _touched(
    warp: WarpLanes, statement: GpuFacts, access: AccessFacts, tensor: Tensor, forms: Sequence[Affine | None], shared: bool
) -> Number:
    """Sectors, or passes over banks, of one load or store of a warp."""
    if not shared:
        return warp.sectors(tensor, forms)
    return warp.passes(tensor, forms, request_bytes(statement.lanes, access.lane_stride, access.item))


def _give_factors(view: NestStatements, by: Multiplied, found: GpuFacts) -> None:
    """Counts what a matrix unit is given from shared memory: by ``ldmatrix``, or read by itself. Either takes 8 rows of a piece
    in a pass over the banks, where these rows are in banks of their own."""
    given = factor_words(view.nest, by)
    tiles = product(number / words for number, words in zip(given.values(), (WORDS_OF_ROWS, WORDS_OF_COLUMNS), strict=True))
    times = found.steps / (tiles * HELD_DOWN * HELD_ACROSS * by.unit.steps)
    for access in accesses(view.nest.anchor):
        axis = by.row if by.row in access.axes else by.column
        loads = 0 if by.unit.from_shared else ceil(given[axis] / _WORDS_OF_LOADS)
        words = given[axis] / (1 if axis is by.row else by.unit.warps)
        apart = strides(view.extents(access.tensor), view.pads.get(access.tensor, ()))[-2] * dtypes.size(access.tensor.dtype)
        rows = Digit(LANES_DOWN, 1, LANES_DOWN, apart)
        passes = touched([rows], [], LANES_DOWN, PIECE_BYTES, LANES_DOWN)[1]
        found.given(times * loads, times * words, times * words * passes)


def _loops(view: NestStatements) -> list[Loop]:
    """Those of the nest: of a fused one its last part."""
    return [parts[-1] for parts in runs(view.loops, view.fused)]


def _later(stage: Attached) -> Number:
    """Whether a stage is copies that may land later: of words, and of nothing but what is there."""
    value = stage.tensor.body.then if isinstance(stage.tensor.body, Select) else stage.tensor.body
    words = equal(modulo(stage.lanes * dtypes.size(stage.tensor.dtype), _WORD), 0)
    return every((isinstance(value, Read), stage.slots > 1, words))


def _reads(tensor: Tensor, facts: StatementFacts) -> Iterator[tuple[Access, AccessFacts]]:
    return zip(accesses(distinct(tensor)), facts.accesses[:-1], strict=True)


def _places(nest: Nest) -> dict[Tensor, bool]:
    """The stages that are computed in the nest, and whether in shared memory."""
    return {stage.tensor: stage.shared for stage in nest.attached}


def _box(access: AccessFacts, around: Sequence[Number], depth: int) -> Number:
    """Bytes of what is touched below ``depth`` loops, each time that it is touched anew."""
    return product([access.item, *around, *(widths[depth] for widths in access.widths)])


def _all(facts: StatementFacts) -> Operations:
    every = facts.operations.values()
    return Operations(*(sum(getattr(each, name) for each in every) for name in Operations.__dataclass_fields__))


def _log(number: Number) -> Number:
    return log2(1 + number)
