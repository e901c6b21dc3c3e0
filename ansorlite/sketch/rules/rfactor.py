"""AddRfactor: a long reduction into few elements becomes partial reductions that all threads share.

Ansor has a second version whose partial results are vector lanes; here lanes of partial results belong to the loop
that is vectorised (see ``schedule/lower_nest.py``), so one version has both.
"""

from __future__ import annotations

from ansorlite.analysis.predicates import has_more_reduction_parallelism
from ansorlite.rewrites.stages import rfactor
from ansorlite.schedule.steps import Rfactor
from ansorlite.sketch.rules.reduction import reduction_nest
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.te.rewriting import tensor_named


def _condition(state: State) -> Verdict:
    stage = state.stage
    if state.is_settled(stage) or not has_more_reduction_parallelism(stage, state.target.threads):
        return Verdict.SKIP
    return Verdict.APPLY


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    partial = f"{stage.name}_rf"
    dag = rfactor(state.dag, stage.name, partial)
    step = Rfactor(stage.name, stage.reduce_axes[0].name, partial)
    # The stage that folds the parts first, then the parts: consumers come before producers.
    after = state.visited(step, dag=dag, first=(stage.name, partial))
    merge = tensor_named(dag, stage.name)
    after = reduction_nest(after, merge, counted=merge.reduce_axes[0])
    parts = tensor_named(after.dag, partial)
    return (reduction_nest(after, parts, factor=parts.reduce_axes[0]),)


ADD_RFACTOR = Rule("AddRfactor", _condition, _apply)
