"""AlwaysInline: an element-wise stage is computed inside its consumers."""

from __future__ import annotations

from ansorlite.analysis.predicates import is_strictly_inlinable
from ansorlite.sketch.state import Rule, State, Verdict


def _condition(state: State) -> Verdict:
    inlinable = is_strictly_inlinable(state.dag, state.stage) and state.stage.name not in state.operands
    return Verdict.APPLY_AND_SKIP_REST if inlinable else Verdict.SKIP


def _apply(state: State) -> tuple[State, ...]:
    s = state.fork()
    s.inline(state.stage.name)
    return (state.visited(s),)


ALWAYS_INLINE = Rule("AlwaysInline", _condition, _apply)
