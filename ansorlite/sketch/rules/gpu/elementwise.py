"""Element-wise stages of GPUs: blocks of threads, a few neighbours a thread."""

from __future__ import annotations

from ansorlite.sketch.rules.gpu.nests import elementwise_nest
from ansorlite.sketch.state import Applicability, Rule, State


def _condition(state: State) -> Applicability:
    if not state.stage.axes or state.stage.reduce_axes or state.stage.name in state.schedule.structure.stages:
        return Applicability.SKIP
    return Applicability.APPLY_AND_SKIP_REST


def _apply(state: State) -> tuple[State, ...]:
    s = state.fork()
    return (state.visited(s, elementwise_nest(s, state.stage, state.target)),)


ELEMENTWISE = Rule("ElementWise", _condition, _apply)
