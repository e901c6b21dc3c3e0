"""MultiLevelTiling: a stage that reads elements again and again is tiled S S R S R S, accumulating in its own output.

Tiles must divide here: an element of the output that two tiles share would be added to twice. Where they do not have
to, AddCacheWrite and MultiLevelTilingWithFusion accumulate in a local tile.
"""

from __future__ import annotations

from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.sketch.tiling import CPU_STRUCTURE, multi_level_tile, natural_lane, packs


def _condition(state: State) -> Applicability:
    return (
        Applicability.APPLY_AND_SKIP_REST
        if has_data_reuse(state.stage) and not state.is_settled(state.stage)
        else Applicability.SKIP
    )


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    lane = natural_lane(stage)
    needed = packs(state, stage, lane, CPU_STRUCTURE) if lane is not None else ((),)
    s = state.fork()
    bands = multi_level_tile(s, stage, CPU_STRUCTURE, lane, state.target, perfect=True)
    for pack in needed[0] if needed else ():
        pack.apply(s, stage.name, bands[stage.name])
    return (state.visited(s, bands),)


MULTI_LEVEL_TILING = Rule("MultiLevelTiling", _condition, _apply)
