"""Features of programs for GPUs: what a launch has, and what each of its stages costs a thread and a block.

They come from the numbers of the schedule alone, of one row or of a population.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from ansorlite.analysis.access import Access, accesses
from ansorlite.columns.arithmetic import ceil, equal, every, floor, log2, maximum, minimum, modulo, product, where
from ansorlite.columns.tape import Number
from ansorlite.features.facts import Operations
from ansorlite.features.operations import operations
from ansorlite.machine.gpu import Gpu
from ansorlite.schedule.nest import Attached, Nest, Program
from ansorlite.sketch.gpu_limits import blocks, registers, shared_bytes, threads
from ansorlite.te import dtypes
from ansorlite.te.expr import Read, Reduce, Select
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads

#: Bytes that a copy which lands later has at least.
_WORD: Final = 4
#: Of each stage. Magnitudes are log2(1 + x); what is of the launch, all of its stages have.
GPU_NAMES: Final = (
    "launch",  # flag: of the stage whose loops a launch is
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
    "shared_loads",  # of one thread
    "shared_words",  # elements that these bring
    "lanes",  # of vectors
    "accumulators",  # of one thread
    "rounds",  # how often a block makes its part of the stage
    "stages",  # slots of the ring that the stage is a part of; of the launch's ring, for the stage whose loops it is
    "later",  # flag: of copies that land later, past the registers
)
#: Column of each name.
GPU_COLUMN: Final = {name: position for position, name in enumerate(GPU_NAMES)}


def gpu_features(program: Program, gpu: Gpu) -> list[Number]:
    """The features of all stages, one after another."""
    return [number for nest in program.nests for number in _nest(program, nest, gpu)]


def _nest(program: Program, nest: Nest, gpu: Gpu) -> Iterator[Number]:
    count, block, words, nbytes = blocks(nest), maximum(threads(nest), 1), registers(nest), shared_bytes(program, nest)
    whole = ceil(block / gpu.warp) * gpu.warp
    fitting = minimum(floor(gpu.registers / (words * whole)), floor(gpu.shared / maximum(nbytes, 1)))
    resident = maximum(minimum(minimum(fitting, floor(gpu.threads / whole)), gpu.blocks), 1)
    waves = ceil(count / gpu.processors)
    launch = [_log(count), _log(block), _log(words), _log(nbytes), _log(resident), count / (waves * gpu.processors)]
    shared = {stage.tensor for stage in nest.attached if stage.shared}
    yield from (1, *launch, *_anchor(nest, shared), _log(1), _log(1 if nest.ring is None else nest.ring.stages), 0)
    for stage in nest.attached:
        yield from (
            0,
            *launch,
            *_attached(nest, stage, shared),
            _log(_rounds(nest, stage)),
            _log(stage.slots),
            _later(stage, gpu),
        )


def _anchor(nest: Nest, shared: set[Tensor]) -> Iterator[Number]:
    anchor, inside = nest.anchor, [loop for loop in nest.loops if loop.bound is None]
    steps = product([1, *(loop.trip for loop in inside)])
    tile = [loop for loop in inside if not loop.reduce and loop.band >= nest.last_space]
    requests: Number = 0
    shared_loads: Number = 0
    shared_words: Number = 0
    nbytes: Number = 0
    for access in accesses(anchor):
        again = product([1, *(loop.trip for loop in tile if loop.axis not in access.axes)])
        along = nest.lane_axis is not None and access.stride(nest.lane_axis) == 1
        words = steps / again
        loads = words / nest.lanes if along else words
        if access.tensor in shared:
            shared_loads, shared_words = shared_loads + loads, shared_words + words
        else:
            requests = requests + loads
            nbytes = nbytes + _box(nest, access) * dtypes.size(access.tensor.dtype)
    written = product([1, *(loop.trip for loop in inside if not loop.reduce)])
    stored = nest.epilogue or anchor
    nbytes = nbytes + written * maximum(nest.threads, 1) * dtypes.size(stored.dtype)
    requests = requests + written / nest.lanes
    accumulators = product([1, *(loop.trip for loop in tile)]) if isinstance(anchor.body, Reduce) else 0
    yield from _numbers(anchor, steps, (nbytes, requests, shared_loads, shared_words), nest.lanes, accumulators)


def _box(nest: Nest, access: Access) -> Number:
    """Elements of a tensor that a block reads, at most all of it."""
    size = product([1, *(nest.sizes[min(1, len(nest.bands))][axis] for axis in access.axes)])
    return minimum(size, prod(access.tensor.shape))


def _rounds(nest: Nest, stage: Attached) -> Number:
    return product([1, *(where(loop.band < stage.at, loop.trip, 1) for loop in nest.loops if loop.bound is None)])


def _later(stage: Attached, gpu: Gpu) -> Number:
    """Whether a stage is copies that land later: of words, and of nothing but what is there."""
    words = equal(modulo(stage.lanes * dtypes.size(stage.tensor.dtype), _WORD), 0)
    return every((bool(gpu.async_copies and _copies(stage.tensor)), stage.slots > 1, words))


def _copies(tensor: Tensor) -> bool:
    """Whether the elements of a stage are those of another one, or constants where there is none."""
    value = tensor.body.then if isinstance(tensor.body, Select) else tensor.body
    return isinstance(value, Read)


def _attached(nest: Nest, stage: Attached, shared: set[Tensor]) -> Iterator[Number]:
    around = _rounds(nest, stage)
    elements = product([1, *stage.lengths])
    terms = prod(axis.extent for axis in stage.tensor.reduce_axes)
    dealt = maximum(stage.dealt, 1)
    steps = around * ceil(elements * terms / dealt)
    wide: Number = 1 if stage.tensor.reduce_axes else stage.lanes
    nbytes: Number = 0
    requests: Number = 0
    written = around * elements / dealt
    shared_loads: Number = written / wide
    shared_words: Number = written
    for access in accesses(stage.tensor):
        if access.tensor in shared:
            shared_loads, shared_words = shared_loads + steps / wide, shared_words + steps
        else:
            requests = requests + steps / wide
            read = minimum(elements * terms, prod(access.tensor.shape))
            nbytes = nbytes + around * read * dtypes.size(access.tensor.dtype)
    yield from _numbers(stage.tensor, steps, (nbytes, requests, shared_loads, shared_words), stage.lanes, 0)


def _numbers(
    tensor: Tensor, steps: Number, moved: tuple[Number, Number, Number, Number], lanes: Number, accumulators: Number
) -> Iterator[Number]:
    assert tensor.body is not None
    every = operations(tensor.body, {read: number for number, read in enumerate(reads(tensor.body))}).values()
    total = Operations(*(sum(getattr(each, name) for each in every) for name in Operations.__dataclass_fields__))
    plain, slow = max(total.cheap, total.mul, 1), total.div + total.math + total.convert + total.dot
    for number in (steps, steps * plain, steps * slow, *moved):
        yield _log(number)
    yield log2(lanes)
    yield _log(accumulators)


def _log(number: Number) -> Number:
    return log2(1 + number)
