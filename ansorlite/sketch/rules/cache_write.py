"""AddCacheWrite: a tiled stage without an element-wise consumer gets one, the copy out of its local tile.

The stage is then visited again, under the cache's name, and fused with the copy. The sketch without the cache stays.
"""

from __future__ import annotations

from ansorlite.analysis.predicates import fusible_consumer, has_data_reuse
from ansorlite.sketch.state import Applicability, Rule, State


def _condition(state: State) -> Applicability:
    stage = state.stage
    if not has_data_reuse(stage) or state.is_settled(stage):
        return Applicability.SKIP
    return Applicability.APPLY if fusible_consumer(state.dag, stage) is None else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    s = state.fork()
    cache = s.cache_write(state.stage.name)
    return (state.visited(s, first=(cache.name,)),)


ADD_CACHE_WRITE = Rule("AddCacheWrite", _condition, _apply)
