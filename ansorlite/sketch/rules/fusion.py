"""MultiLevelTilingWithFusion: a tiled stage and its element-wise consumer in the same tiles.

The accumulators are a local tile; the consumer reads them while they are near. After which band it runs (the outer
tile, the inner tile, or the register tile when nothing reduces further out) is a hole. There is one sketch for each
axis worth vectorising and each set of operands worth packing.
"""

from __future__ import annotations

from ansorlite.analysis.predicates import fusible_consumer, has_data_reuse
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.sketch.tiling import CPU_STRUCTURE, crossing_lane, follow, multi_level_tile, packs, space_lanes

#: The consumer runs after S, after S S, or after S S R S (if R has one iteration).
PLACES = (1, 2, 4)


def _condition(state: State) -> Verdict:
    stage = state.stage
    if not has_data_reuse(stage) or state.is_settled(stage):
        return Verdict.SKIP
    consumer = fusible_consumer(state.dag, stage)
    return Verdict.APPLY_AND_SKIP_REST if consumer is not None and not state.is_settled(consumer) else Verdict.SKIP


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    consumer = fusible_consumer(state.dag, stage)
    assert consumer is not None
    after = follow(consumer, stage, PLACES)
    lanes = space_lanes(stage, state.target)
    if not lanes:
        return (state.visited(*multi_level_tile(stage, CPU_STRUCTURE, None, state.target), after),)
    tiled = [(lane, multi_level_tile(stage, CPU_STRUCTURE, lane, state.target)) for lane in lanes]
    crossing = crossing_lane(state.dag, stage, state.target)
    if crossing is not None:
        # Register tiles are of neighbours in memory, whose vectors are transposed before they are stored.
        outer = [axis for axis in stage.axes if axis not in (crossing, lanes[0])]
        tiled.append((crossing, multi_level_tile(stage, CPU_STRUCTURE, crossing, state.target, outer=outer)))
    return tuple(
        state.visited(*steps, after, *packed)
        for lane, steps in tiled
        for packed in packs(state, stage, lane, CPU_STRUCTURE) or ()
    )


MULTI_LEVEL_TILING_WITH_FUSION = Rule("MultiLevelTilingWithFusion", _condition, _apply)
