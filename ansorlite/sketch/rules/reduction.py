"""ReductionTiling (ours): a reduction that reads every element once is tiled S R S, in a local tile of accumulators.

It covers what Ansor leaves to annotation: reductions that are outputs or have an element-wise consumer (pooling, means,
norms). Vectors run along the axis that memory is contiguous in, which may be a reduce axis. Reductions that another
stage reads in some other way stay without a nest, so that they can be computed inside of their consumers' rows.
"""

from __future__ import annotations

from ansorlite.analysis.access import accesses, axes_of, lane_axis
from ansorlite.analysis.predicates import fusible_consumer, has_data_reuse, is_simple
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.state import Applicability, Bands, Rule, State, is_settled
from ansorlite.sketch.tiling import MAX_ROW, follow, multi_level_tile
from ansorlite.target import Target
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

STRUCTURE = "SRS"
#: Of a sum along columns: a few rows at once are added to a row of accumulators, which stays in the first cache.
BY_ROWS = "SRSRS"


def _condition(state: State) -> Applicability:
    stage = state.stage
    if not stage.reduce_axes or has_data_reuse(stage) or state.is_settled(stage):
        return Applicability.SKIP
    consumer = fusible_consumer(state.dag, stage)
    free = consumer is not None and not state.is_settled(consumer)
    return Applicability.APPLY_AND_SKIP_REST if free or stage in state.dag.outputs else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    s = state.fork()
    return (state.visited(s, reduction_nest(s, state.stage, state.target)),)


def reduction_nest(
    s: Schedule, stage: Tensor, target: Target, factor: str | None = None, counted: Axis | None = None
) -> dict[str, Bands]:
    """Gives ``stage`` a nest of its own; the bands of that.

    Args:
        factor: the name of the axis of ``stage`` whose outermost loop makes partial results, when it is an rfactor's.
        counted: the reduce axis of ``stage`` that counts such parts, when it folds them.
    """
    consumer = fusible_consumer(s.dag, stage)
    if consumer is not None and not is_settled(s, consumer):
        leader, epilogue = stage, consumer.name
    else:
        leader, epilogue = s.cache_write(stage.name).tensor, stage.name
    lane = lane_axis(leader)
    if counted is not None and lane is not None and lane.reduce:
        lane = next((axis for axis in reversed(leader.axes) if axis.extent > 1), None)
    if factor is not None and lane is leader.axes[0]:
        lane = leader.reduce_axes[-1]
    structure = BY_ROWS if factor is None and counted is None and _walks_rows(leader, lane) else STRUCTURE
    bands = multi_level_tile(
        s, leader, structure, lane, target, max_inner=MAX_ROW,
        factor=next(axis for axis in leader.reduce_axes if axis.name == factor) if factor is not None else None,
        counted=leader.reduce_axes[0] if counted is not None else None,
    )  # fmt: skip
    follow(s, epilogue, leader.name, bands[leader.name], (1,))
    return bands


def _walks_rows(stage: Tensor, lane: Axis | None) -> bool:
    """Whether each element of memory is read once, and neighbours in memory belong to different elements of the result."""
    plain = all(is_simple(access) and access.axes.issuperset(axes_of(stage)) for access in accesses(stage) if access.axes)
    return lane is not None and not lane.reduce and plain and any(a.stride(lane) == 1 for a in accesses(stage))


REDUCTION_TILING = Rule("ReductionTiling", _condition, _apply)
