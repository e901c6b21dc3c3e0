"""AlwaysInline: an element-wise stage is computed inside its consumers."""

from __future__ import annotations

from ansorlite.analysis.predicates import is_strictly_inlinable
from ansorlite.schedule.steps import Inline
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.te.rewriting import inline


def _condition(state: State) -> Verdict:
    inlinable = is_strictly_inlinable(state.dag, state.stage) and state.stage.name not in state.operands
    return Verdict.APPLY_AND_SKIP_REST if inlinable else Verdict.SKIP


def _apply(state: State) -> tuple[State, ...]:
    name = state.stage.name
    return (state.visited(Inline(name), dag=inline(state.dag, name)),)


ALWAYS_INLINE = Rule("AlwaysInline", _condition, _apply)
