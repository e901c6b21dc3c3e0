"""ConvertOnce (ours): factors of a sum of products that are stored in a narrower dtype are converted into copies.

Register tiles use each element many times, and conversions, of scalars above all, cost as much as the products. The copies are
stages of their own, which are then given a place like any other. A sum of dot products of words has no conversions left.
"""

from __future__ import annotations

from ansorlite.analysis.conversion import conversions
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.te.rewriting import unused_name


def _condition(state: State) -> Applicability:
    found = conversions(state.stage)
    return Applicability.APPLY_AND_SKIP_REST if found and not state.is_settled(state.stage) else Applicability.SKIP


def _apply(state: State) -> tuple[State, ...]:
    stage = state.stage
    found = conversions(stage)
    names = tuple(unused_name(state.dag, f"{stage.name}_{letter}") for letter, _ in zip("ab", found, strict=False))
    s = state.fork()
    s.convert(stage.name, names)
    return (state.visited(s, first=(stage.name, *names)),)


CONVERT_ONCE = Rule("ConvertOnce", _condition, _apply)
