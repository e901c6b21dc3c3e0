"""AddCacheRead (ours, for stages that add nothing up): what is read across the rows of memory comes from a copy of the tile.

A transposed operand is contiguous along another axis than the result. Whichever of the two a vector runs along, the elements of
the other lie a row apart, and each of its lines is come back to once for every element of it. A copy of the tile, made right
before its use, reads whole lines, and is transposed on the way (``schedule/packing.py``). The sketch without the copy stays.
"""

from __future__ import annotations

from ansorlite.analysis.access import Access, accesses
from ansorlite.analysis.predicates import packable
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.sketch.tiling import ELEMENTWISE_STRUCTURE, MAX_ROW, ends, multi_level_tile, natural_lane
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor


def _across(stage: Tensor, lane: Axis) -> tuple[Access, ...]:
    """The reads that step over rows along ``lane`` and are contiguous along another axis; each of a tensor that is read once."""
    found = accesses(stage)
    return tuple(
        access
        for access in found
        if (access.stride(lane) or 0) > 1
        and any(access.stride(axis) == 1 for axis in stage.axes if axis is not lane)
        and packable(access)
        and sum(other.tensor is access.tensor for other in found) == 1
    )


def _condition(state: State) -> Applicability:
    stage = state.stage
    if stage.reduce_axes or stage not in state.dag.outputs or state.is_settled(stage):
        return Applicability.SKIP
    lane, given = natural_lane(stage), all(access.tensor.body is None for access in accesses(stage))
    return Applicability.APPLY if given and lane is not None and _across(stage, lane) else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    lane = natural_lane(stage)
    assert lane is not None
    s = state.fork()
    bands = multi_level_tile(s, stage, ELEMENTWISE_STRUCTURE, lane, state.target, max_inner=MAX_ROW)
    outer, _ = ends(bands[stage.name])
    for access in _across(stage, lane):
        s.cache_read(stage.name, access.tensor, at=outer, layout="packed")
    return (state.visited(s, bands),)


ADD_CACHE_READ = Rule("AddCacheRead", _condition, _apply)
