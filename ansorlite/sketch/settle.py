"""The end of a derivation: every stage that no rule has given loops gets a place."""

from __future__ import annotations

from ansorlite.analysis.access import lane_axis
from ansorlite.analysis.branches import region_loops
from ansorlite.analysis.constants import constant_stages
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.rules.reduction import reduction_nest
from ansorlite.sketch.state import Bands, State
from ansorlite.sketch.stream import stream
from ansorlite.sketch.tiling import ELEMENTWISE_STRUCTURE, MAX_ROW, ends, lane_choices, multi_level_tile
from ansorlite.target import Target
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor


def settle(state: State) -> State:
    """``state`` with a nest, or a place in one, for every stage.

    A stage that one nest alone uses is computed inside of it, at a band that is a hole, or whole at the root. An output,
    or a stage that several nests use, gets a nest of its own.
    """
    s, bands = state.fork(), dict(state.bands)
    for name in [t.name for t in reversed(state.dag.computes)]:
        stage, said = tensor_named(s.dag, name), s.structure.stages
        packed = any(copy.tensor == name for of in said.values() for copy in of.copies)
        if name in said or (packed and name in state.operands):
            continue
        users = s.structure.users(name)
        if stage not in s.dag.outputs and len(users) == 1:
            (anchor,) = users
            _attach(s, stage, bands.get(anchor, ()), state.target)
        elif stage.reduce_axes:
            bands |= reduction_nest(s, stage, state.target)
        else:
            bands |= multi_level_tile(s, stage, ELEMENTWISE_STRUCTURE, lane_axis(stage), state.target, max_inner=MAX_ROW)
    stream(s, state.target)
    return state.visited(s, bands)


def _attach(s: Schedule, stage: Tensor, bands: Bands, target: Target) -> None:
    prepared = stage in constant_stages(s.dag)
    # Anywhere but around single elements of the innermost tile.
    places = ends(bands)[: max(1, len(bands) - 3)]
    lane, parallel, lanes = lane_axis(stage), tuple(range(min(3, stage.ndim + 1))), lane_choices(target, stage, widest=4)
    if prepared:
        # How fast it is done before the first call hardly matters: there is nothing to choose.
        places, parallel, lanes = (), parallel[-1:], lanes[-1:]
    s.compute_at(stage.name, s.sample((None, *places), name=f"{stage.name}.at"))
    outer = [LoopRef(stage.name, axis.name) for axis in region_loops(stage, lane)]
    if outer:
        s.parallel(outer, depth=s.sample(parallel, name=f"{stage.name}.parallel"))
    if lane is not None:
        s.vectorize(s.stage(stage)[lane], lanes=s.sample(lanes, name=f"{stage.name}.lanes"))
