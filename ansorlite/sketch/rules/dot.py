"""DotProduct (ours): sums of products of small numbers are computed a word of them at a time.

It is asked about the expression alone: which dot products the machine has, and whether the values of both factors fit
into the pieces of their words. The words are stages of their own, which are then given a place like any other, or what memory has
anyway; the sum over words is visited again, and tiled like any other sum. Matrix units multiply rows whose words lie side by
side. Without such an instruction nothing changes.
"""

from __future__ import annotations

from ansorlite.analysis.dot import dot_product, steps_apart
from ansorlite.sketch.state import Applicability, Rule, State


def _condition(state: State) -> Applicability:
    found = dot_product(state.stage, state.target.dots)
    return Applicability.APPLY_AND_SKIP_REST if found is not None and not state.is_settled(state.stage) else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    how = dot_product(stage, state.target.dots)
    assert how is not None
    s = state.fork()
    steps_last = how.op in state.target.matrix_dots and steps_apart(stage, how)
    words = s.tensorize(s.stage(stage)[how.axis], how.op.value, steps_last=steps_last)
    return (state.visited(s, first=(stage.name, *(made.name for made in words))),)


DOT_PRODUCT = Rule("DotProduct", _condition, _apply)
