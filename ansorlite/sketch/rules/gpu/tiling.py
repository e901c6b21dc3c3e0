"""Tiled sums of GPUs (Ansor's SSSRRSRS, with the loops in the order in which a GPU runs them).

The structure is S R S R S S: blocks, steps of the outer sum, threads, steps of the inner sum, virtual threads, a tile of
accumulators in each thread's registers. Threads come inside of the outer sum: in each of its steps all threads of the block first
copy what they are going to read into memory that they share, then add it up. Of each axis a block is cut into virtual threads,
these into threads, and these into tiles: so what a thread adds up are several small tiles, a whole row of threads apart, and
neighbouring threads read neighbouring vectors. Blocks are numbered in groups of a few along the axis before the last one. Copies
are made some steps ahead, in a ring.

The element-wise consumer runs on the accumulators. A stage without one gets one: its copy out of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ansorlite.analysis.access import Access, accesses, walked
from ansorlite.analysis.predicates import fusible_consumer, has_data_reuse
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.gpu_limits import MOST_VIRTUAL
from ansorlite.sketch.rules.gpu.nests import MAX_TILE, bind, copy_ahead, lanes_of, real_axes
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.sketch.tiling import split
from ansorlite.te.tensor import Tensor

#: Rows of blocks that are a group.
MAX_GROUP = 8
#: Steps of the inner sum: so many elements of each operand are shared at a time.
MAX_STEP = 64
#: Straight-line code of at most so many vector statements. A tile of accumulators always is: registers have no numbers that are
#: computed.
UNROLL_LIMITS = (256, 512, 1024)
#: Rows of a shared copy begin so many elements behind a multiple of ``_BANKS``, which is as good as none; a vector; one.
PADS = (8, 4, 1)
_BANKS = 8
#: Chunks of 16 bytes that change places from row to row.
SWIZZLES = (1, 8)


def _waits_for_leader(state: State) -> Applicability:
    stage = state.stage
    if state.is_settled(stage) or stage.reduce_axes:
        return Applicability.SKIP
    leaders = (
        producer
        for producer in state.dag.producers(stage)
        if has_data_reuse(producer) and not state.is_settled(producer) and fusible_consumer(state.dag, producer) is stage
    )
    return Applicability.APPLY_AND_SKIP_REST if next(leaders, None) is not None else Applicability.SKIP


def has_epilogue(state: State) -> Applicability:
    """Whether the stage is to be tiled, and another one can follow it."""
    consumer = fusible_consumer(state.dag, state.stage)
    if not has_data_reuse(state.stage) or state.is_settled(state.stage):
        return Applicability.SKIP
    # A copy that another stage's threads share has its place.
    free = consumer is not None and consumer.name not in state.schedule.structure.stages
    return Applicability.APPLY_AND_SKIP_REST if free else Applicability.SKIP


def _tile(state: State) -> tuple[State, ...]:
    return tuple(_tiled(state, layouts) for layouts in _layouts(state.stage))


def _layouts(stage: Tensor) -> Iterator[dict[Tensor, str]]:
    """The ways to lay out the shared copies, a sketch each: an operand that is contiguous along the sum may be transposed."""
    read = {access.tensor: access for access in accesses(stage) if _is_shared(stage, access)}
    choices = [("plain", "transposed") if _along_the_sum(stage, access) else ("plain",) for access in read.values()]
    for chosen in product(*choices):
        yield dict(zip(read, chosen, strict=True))


def _is_shared(stage: Tensor, access: Access) -> bool:
    """Whether several threads of a block read an element."""
    return any(axis.extent > 1 and axis not in access.axes for axis in stage.axes) or not _moves_simply(access)


def _moves_simply(access: Access) -> bool:
    """Whether no two axes move along one dimension, as in a window that slides."""
    return all(form is not None and len(form.terms) <= 1 for form in access.dims)


def _along_the_sum(stage: Tensor, access: Access) -> bool:
    plain = access.tensor.ndim > 1 and _moves_simply(access)
    return plain and any(access.stride(axis) == 1 and axis.extent > 1 for axis in stage.reduce_axes)


def _tiled(state: State, layouts: dict[Tensor, str]) -> State:
    s, stage, target = state.fork(), state.stage, state.target
    consumer = fusible_consumer(state.dag, stage)
    assert consumer is not None
    assert target.gpu is not None
    most = (MOST_VIRTUAL, target.gpu.block_threads, MAX_TILE)
    axes = real_axes(stage)
    # Blocks run in the order of their numbers: those of a group of rows side by side read the same columns meanwhile.
    levels = {axis: (None, MAX_GROUP, *most) if axis in axes[-2:-1] else (None, *most) for axis in axes}
    space = {axis: split(s, stage, axis, len(each), False, MAX_TILE, each) for axis, each in levels.items()}
    reduce = {axis: split(s, stage, axis, 2, False, MAX_STEP) for axis in stage.reduce_axes if axis.extent > 1}
    virtual, threads, tile = ([loops[level - len(most)] for loops in space.values()] for level in range(len(most)))
    blocks = [loops[0] for loops in space.values()] + [loop for loops in space.values() for loop in loops[1 : -len(most)]]
    outer, inner = ([loops[level] for loops in reduce.values()] for level in range(2))
    s.reorder(*blocks, *outer, *threads, *inner, *virtual, *tile)
    if len(outer) > 1:
        # What is copied ahead is copied for the next step of all of them.
        outer = [s.fuse(*outer)]
    bands: tuple[tuple[LoopRef, ...], ...] = tuple(map(tuple, (blocks, outer, threads, inner, [*virtual, *tile])))
    bind(s, blocks, "block")
    bind(s, threads, "thread")
    s.vectorize(tile[-1], lanes=s.sample(lanes_of(target, stage), name=f"{stage.name}.lanes"))
    s.unroll((*inner, *virtual, *tile), max_steps=s.sample(UNROLL_LIMITS, name=f"{stage.name}.unroll"))
    s.reverse_compute_at(consumer.name, blocks[-1])
    for tensor, layout in layouts.items():
        copy = s.cache_read(stage.name, tensor.name, at=(outer or blocks)[-1], layout=layout, scope="shared")
        assert copy is not None
        _shape_copy(s, copy.tensor, lanes_of(target, copy.tensor))
    if layouts and outer:
        copy_ahead(s, stage, outer[0], target)
    return state.visited(s, {stage.name: bands})


def _shape_copy(s: Schedule, copy: Tensor, widths: tuple[int, ...]) -> None:
    """How a copy is walked, and how it lies."""
    last = copy.axes[walked(copy)[-1]]
    s.vectorize(s.stage(copy)[last], lanes=s.sample(widths, name=f"{copy.name}.lanes"))
    if copy.ndim > 1 and copy.axes[-2].extent > 1:
        row = s.stage(copy)[copy.axes[-2]]
        s.storage_align(copy.name, row, _BANKS, s.sample(PADS, name=f"{copy.name}.pad"))
        s.swizzle(copy.name, s.sample(SWIZZLES, name=f"{copy.name}.swizzle"))


def _lacks_epilogue(state: State) -> Applicability:
    wants = has_data_reuse(state.stage) and not state.is_settled(state.stage) and state.stage.axes
    return Applicability.APPLY_AND_SKIP_REST if wants else Applicability.SKIP


def _cache(state: State) -> tuple[State, ...]:
    s = state.fork()
    return (state.visited(s, first=(s.cache_write(state.stage.name).name,)),)


EPILOGUE = Rule("FollowsAccumulators", _waits_for_leader, lambda state: (state.visited(),))
TILING = Rule("MultiLevelTilingWithFusion", has_epilogue, _tile)
CACHE_WRITE = Rule("AddCacheWrite", _lacks_epilogue, _cache)
