"""The end of a derivation: every stage that no rule has given loops gets a place."""

from __future__ import annotations

from dataclasses import replace

from ansorlite.analysis.access import lane_axis
from ansorlite.analysis.constants import constant_stages
from ansorlite.schedule.steps import CacheRead, ComputeAt, Follow, Hole, Parallel, Reorder, Step, Vectorize
from ansorlite.sketch.rules.reduction import reduction_nest
from ansorlite.sketch.state import State
from ansorlite.sketch.stream import streams
from ansorlite.sketch.tiling import ELEMENTWISE_STRUCTURE, MAX_ROW, lane_choices, multi_level_tile
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor


def settle(state: State) -> State:
    """``state`` with a nest, or a place in one, for every stage.

    A stage that one nest alone uses is computed inside of it, at a band that is a hole, or whole at the root. An output,
    or a stage that several nests use, gets a nest of its own.
    """
    anchors = _anchors(state)
    for name in [t.name for t in reversed(state.dag.computes)]:
        stage = tensor_named(state.dag, name)
        packed = any(isinstance(step, CacheRead) and step.tensor == name for step in state.steps)
        if name in anchors or (packed and name in state.operands):
            continue
        users = {anchors[consumer.name] for consumer in state.dag.consumers(stage)}
        if stage not in state.dag.outputs and len(users) == 1:
            (anchor,) = users
            state = replace(state, steps=state.steps + _attach(state, stage, anchor))
            anchors[name] = anchor
        elif stage.reduce_axes:
            state = reduction_nest(replace(state, pending=(name,)), stage)
            anchors |= _anchors(state)
        else:
            lane = lane_axis(stage)
            steps = multi_level_tile(stage, ELEMENTWISE_STRUCTURE, lane, state.target, max_inner=MAX_ROW)
            state = replace(state, steps=state.steps + steps)
            anchors[name] = name
    return replace(state, steps=state.steps + tuple(streams(state)))


def _anchors(state: State) -> dict[str, str]:
    """The anchor in whose nest each settled stage is computed."""
    found = {step.stage: step.stage for step in state.steps if isinstance(step, Reorder)}
    found |= {step.stage: step.leader for step in state.steps if isinstance(step, Follow)}
    return found | {step.stage: step.anchor for step in state.steps if isinstance(step, ComputeAt)}


def _attach(state: State, stage: Tensor, anchor: str) -> tuple[Step, ...]:
    bands = next(step.bands for step in state.steps if isinstance(step, Reorder) and step.stage == anchor)
    prepared = stage in constant_stages(state.dag)
    # Anywhere but around single elements of the innermost tile.
    places = tuple(range(max(2, len(bands) - 2)))
    parallel, lanes = tuple(range(min(3, stage.ndim + 1))), lane_choices(state.target, stage, widest=4)
    if prepared:
        # How fast it is done before the first call hardly matters: there is nothing to choose.
        places, parallel, lanes = (0,), parallel[-1:], lanes[-1:]
    steps: list[Step] = [
        ComputeAt(stage.name, anchor, Hole(f"{stage.name}.at", places)),
        Parallel(stage.name, Hole(f"{stage.name}.parallel", parallel)),
    ]
    lane = lane_axis(stage)
    if lane is not None:
        steps.append(Vectorize(stage.name, lane.name, Hole(f"{stage.name}.lanes", lanes)))
    return tuple(steps)
