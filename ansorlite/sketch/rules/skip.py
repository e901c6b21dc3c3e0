"""SkipStage: nothing is done to the stage here; where it is computed is settled when the sketch is finished."""

from __future__ import annotations

from ansorlite.sketch.state import Applicability, Rule, State


def _condition(_: State) -> Applicability:
    return Applicability.APPLY


def _apply(state: State) -> tuple[State, ...]:
    return (state.visited(),)


SKIP_STAGE = Rule("SkipStage", _condition, _apply)
