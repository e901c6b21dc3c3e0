"""DotProduct (ours): sums of products of small numbers are computed a word of them at a time.

It is asked about the expression alone: which dot products the machine has, and whether the values of both factors fit
into the pieces of their words. The words are stages of their own, which are then given a place like any other, or what memory has
anyway; the sum over words is visited again, and tiled like any other sum. Without such an instruction nothing changes.
"""

from __future__ import annotations

from ansorlite.analysis.dot import dot_product
from ansorlite.rewrites.dot import dot_words
from ansorlite.schedule.steps import Dot
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.te.rewriting import unused_name


def _condition(state: State) -> Verdict:
    found = dot_product(state.stage, state.target.dots)
    return Verdict.APPLY_AND_SKIP_REST if found is not None and not state.is_settled(state.stage) else Verdict.SKIP


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    how = dot_product(stage, state.target.dots)
    assert how is not None
    names = (unused_name(state.dag, f"{stage.name}_a"), unused_name(state.dag, f"{stage.name}_b"))
    dag = dot_words(state.dag, stage.name, how, names)
    made = tuple(name for name in names if any(tensor.name == name for tensor in dag.tensors))
    return (state.visited(Dot(stage.name, how.axis.name, how.op, made), dag=dag, first=(stage.name, *made)),)


DOT_PRODUCT = Rule("DotProduct", _condition, _apply)
