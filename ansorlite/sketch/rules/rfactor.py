"""AddRfactor: a long reduction into few elements becomes partial reductions that all threads share.

Ansor has a second version whose partial results are vector lanes; here lanes of partial results belong to the loop
that is vectorised (see ``schedule/lower_nest.py``), so one version has both.
"""

from __future__ import annotations

from ansorlite.analysis.predicates import has_more_reduction_parallelism
from ansorlite.sketch.rules.reduction import reduction_nest
from ansorlite.sketch.state import Applicability, Rule, State


def _condition(state: State) -> Applicability:
    stage = state.stage
    if state.is_settled(stage) or not has_more_reduction_parallelism(stage, state.target.threads):
        return Applicability.SKIP
    return Applicability.APPLY


def _apply(state: State) -> tuple[State, ...]:
    s, stage = state.fork(), state.stage
    axis = stage.reduce_axes[0]
    partial = s.rfactor(s.stage(stage)[axis])
    # The stage that folds the parts first, then the parts: consumers come before producers.
    merge = s.stage(stage).tensor
    bands = reduction_nest(s, merge, state.target, counted=merge.reduce_axes[0])
    bands |= reduction_nest(s, partial.tensor, state.target, factor=axis.name)
    return (state.visited(s, bands),)


ADD_RFACTOR = Rule("AddRfactor", _condition, _apply)
