"""CrossThreadReduction: sums of few elements, or of long rows, that the threads of a block add up together.

The stage that reads the sums gives whole rows to a block (softmax, norms, means). What it needs besides, the sums and what is
expensive to compute again, is computed in its loops over blocks, by all threads together, in memory that they share: one launch
for all of it. A sum that nobody reads so gets a copy that does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce as folded
from math import prod

from ansorlite.analysis.access import accesses, lane_axis, walked
from ansorlite.analysis.constants import constant_stages
from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.schedule.primitives import CacheWrite
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.gpu_limits import REDUCE_LANES
from ansorlite.sketch.rules.gpu.nests import elementwise_nest, lanes_of, real_axes, row_nest
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

#: A block's rows are at most so long, in elements: what is kept of them is in shared memory.
LONGEST_ROW = 1 << 14


def _besides(state: State) -> Iterator[Tensor]:
    """What the stage reads that may be computed in its blocks: it has no loops yet, is no product, and nobody else needs it."""
    constants = constant_stages(state.dag)
    for producer in state.dag.producers(state.stage):
        free = producer.body is not None and producer.name not in state.schedule.structure.stages
        # What is computed before the first call stays so.
        free = free and (producer in constants) == (state.stage in constants)
        if free and not has_data_reuse(producer) and producer not in state.dag.outputs:
            yield producer


def _rows(state: State) -> tuple[Axis, ...]:
    """The axes that all of it depends on."""
    stage, besides = state.stage, set(_besides(state))
    seen = [access.axes for access in accesses(stage) if access.tensor in besides]
    common = folded(frozenset.intersection, seen) if seen else frozenset[Axis]()
    return tuple(axis for axis in stage.axes if axis in common)


def _has_rows(state: State) -> Applicability:
    stage = state.stage
    if state.is_settled(stage) or stage.reduce_axes or not stage.axes or stage.name in state.schedule.structure.stages:
        return Applicability.SKIP
    besides = list(_besides(state))
    row = prod(axis.extent for axis in stage.axes if axis not in _rows(state))
    return Applicability.APPLY_AND_SKIP_REST if besides and row <= LONGEST_ROW else Applicability.SKIP


def _whole_rows(state: State) -> tuple[State, ...]:
    s, stage, rows = state.fork(), state.stage, _rows(state)
    if prod(stage.shape) == 1:
        # Its one loop is the one over blocks.
        rows = stage.axes
    if not any(axis in rows for axis in real_axes(stage)):
        # All of it is one row, too much for one block: what it needs is computed before it.
        return (state.visited(s, elementwise_nest(s, stage, state.target)),)
    bands = row_nest(s, stage, rows, state.target)
    after = state.visited(s, bands)
    at = bands[stage.name][0][-1]
    return (State(s, state.target, after.pending, after.bands, {**state.rows, stage.name: at}),)


def _is_needed_in_rows(state: State) -> Applicability:
    stage = state.stage
    if stage.name in state.schedule.structure.stages or stage in state.dag.outputs or has_data_reuse(stage):
        return Applicability.SKIP
    users, constants = state.schedule.structure.users(stage.name), {tensor.name for tensor in constant_stages(state.dag)}
    alone = len(users) == 1 and users[0] in state.rows and (stage.name in constants) == (users[0] in constants)
    return Applicability.APPLY_AND_SKIP_REST if alone else Applicability.SKIP


def _share(state: State) -> tuple[State, ...]:
    s, stage = state.fork(), state.stage
    (user,) = s.structure.users(stage.name)
    s.compute_at(stage.name, state.rows[user], scope="shared")
    _shape(state, s.stage(stage.name).tensor, s)
    return (state.visited(s),)


def _shape(state: State, stage: Tensor, s: Schedule) -> None:
    gpu = state.target.gpu
    assert gpu is not None
    if stage.reduce_axes:
        lane = lane_axis(stage)
        axis = lane if lane is not None and lane.reduce else max(stage.reduce_axes, key=lambda axis: axis.extent)
        lanes = tuple(count for count in REDUCE_LANES if count <= gpu.block_threads and count <= axis.extent)
    elif walked(stage):
        axis, lanes = stage.axes[walked(stage)[-1]], lanes_of(state.target, stage)
    else:
        return
    s.vectorize(s.stage(stage)[axis], lanes=s.sample(lanes, name=f"{stage.name}.lanes"))


def _adds_up(state: State) -> Applicability:
    stage = state.stage
    if not stage.reduce_axes or not stage.axes or stage.name in state.schedule.structure.stages:
        return Applicability.SKIP
    made = any(isinstance(step, CacheWrite) and step.name == stage.name for step in state.steps)
    return Applicability.SKIP if made else Applicability.APPLY_AND_SKIP_REST


def _copy(state: State) -> tuple[State, ...]:
    s = state.fork()
    cache = s.cache_write(state.stage.name)
    return (state.visited(s, first=(state.stage.name, cache.name)),)


WHOLE_ROWS = Rule("WholeRows", _has_rows, _whole_rows)
SHARED_ROW = Rule("SharedRow", _is_needed_in_rows, _share)
CROSS_THREAD_REDUCTION = Rule("CrossThreadReduction", _adds_up, _copy)
