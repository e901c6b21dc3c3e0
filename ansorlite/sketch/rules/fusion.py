"""MultiLevelTilingWithFusion: a tiled stage and its element-wise consumer in the same tiles.

The accumulators are a local tile; the consumer reads them while they are near. After which band it runs (the outer
tile, the inner tile, or the register tile when nothing reduces further out) is a hole. There is one sketch for each
axis worth vectorising and each set of operands worth packing.
"""

from __future__ import annotations

from ansorlite.analysis.predicates import fusible_consumer, has_data_reuse
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.sketch.tiling import CPU_STRUCTURE, Pack, crossing_lane, follow, multi_level_tile, packs, space_lanes
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

#: The consumer runs after S, after S S, or after S S R S (if R has one iteration).
PLACES = (1, 2, 4)


def _condition(state: State) -> Applicability:
    stage = state.stage
    if not has_data_reuse(stage) or state.is_settled(stage):
        return Applicability.SKIP
    consumer = fusible_consumer(state.dag, stage)
    return Applicability.APPLY_AND_SKIP_REST if consumer is not None and not state.is_settled(consumer) else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    consumer = fusible_consumer(state.dag, stage)
    assert consumer is not None
    lanes = space_lanes(stage, state.target)
    if not lanes:
        return (_tiled(state, stage, consumer, None, ()),)
    outer_of: dict[Axis, tuple[Axis, ...]] = dict.fromkeys(lanes, ())
    crossing = crossing_lane(state.dag, stage, state.target)
    if crossing is not None:
        # Register tiles are of neighbours in memory, whose vectors are transposed before they are stored.
        outer_of[crossing] = tuple(axis for axis in stage.axes if axis not in (crossing, lanes[0]))
    return tuple(
        _tiled(state, stage, consumer, lane, packed, outer)
        for lane, outer in outer_of.items()
        for packed in packs(state, stage, lane, CPU_STRUCTURE) or ()
    )


def _tiled(
    state: State, stage: Tensor, consumer: Tensor, lane: Axis | None, packed: tuple[Pack, ...], outer: tuple[Axis, ...] = ()
) -> State:
    s = state.fork()
    bands = multi_level_tile(s, stage, CPU_STRUCTURE, lane, state.target, outer=outer)
    follow(s, consumer.name, stage.name, bands[stage.name], PLACES)
    for pack in packed:
        pack.apply(s, stage.name, bands[stage.name])
    return state.visited(s, bands)


MULTI_LEVEL_TILING_WITH_FUSION = Rule("MultiLevelTilingWithFusion", _condition, _apply)
