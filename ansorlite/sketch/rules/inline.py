"""AlwaysInline: an element-wise stage is computed inside its consumers."""

from __future__ import annotations

from ansorlite.analysis.predicates import is_strictly_inlinable
from ansorlite.sketch.state import Applicability, Rule, State


def _condition(state: State) -> Applicability:
    inlinable = is_strictly_inlinable(state.dag, state.stage) and state.stage.name not in state.operands
    return Applicability.APPLY_AND_SKIP_REST if inlinable else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    s = state.fork()
    s.inline(state.stage.name)
    return (state.visited(s),)


ALWAYS_INLINE = Rule("AlwaysInline", _condition, _apply)
