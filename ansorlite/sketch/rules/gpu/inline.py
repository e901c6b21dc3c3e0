"""Inlining on GPUs: memory is far, and arithmetic cheap; what is element by element is computed where it is read.

Two things stay: what is expensive and read more than once, and what follows from constants, which is computed before the first
call. What a tiled sum reads is computed into the copy that the threads of a block share, so it is inlined once that is there.
"""

from __future__ import annotations

from math import prod

from ansorlite.analysis.constants import constant_stages
from ansorlite.analysis.predicates import has_data_reuse, is_expensive, reads_each_once
from ansorlite.schedule.primitives import CacheWrite
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.te.tensor import Tensor


def inlinable(state: State, stage: Tensor) -> bool:
    """Whether a stage is computed inside of those that read it."""
    dag = state.dag
    if stage.body is None or stage.reduce_axes or stage in dag.outputs or stage.name in state.schedule.structure.stages:
        return False
    if any(isinstance(step, CacheWrite) and step.stage.name == stage.name for step in state.steps):
        # It was made to give a sum loops of its own.
        return False
    if stage in constant_stages(dag) and prod(stage.shape) <= sum(prod(source.shape) for source in dag.producers(stage)):
        return False
    consumers = dag.consumers(stage)
    if any(has_data_reuse(consumer) and not state.is_settled(consumer) for consumer in consumers):
        return False
    return not is_expensive(stage) or (len(consumers) == 1 and reads_each_once(consumers[0], stage))


def _all(state: State) -> list[str]:
    return [stage.name for stage in state.dag.computes if inlinable(state, stage)]


def _before(state: State) -> Applicability:
    return Applicability.APPLY_AND_SKIP_REST if not state.bands and _all(state) else Applicability.SKIP


def _inline_all(state: State) -> tuple[State, ...]:
    """Before any stage has loops, so that rules see which stages are left."""
    s = state.fork()
    for name in _all(state):
        s.inline(name)
    left = {stage.name for stage in s.dag.computes}
    return (State(s, state.target, tuple(name for name in state.pending if name in left), state.bands, state.rows),)


def _into_copies(state: State) -> Applicability:
    return Applicability.APPLY_AND_SKIP_REST if inlinable(state, state.stage) else Applicability.SKIP


def _inline(state: State) -> tuple[State, ...]:
    s = state.fork()
    s.inline(state.stage.name)
    return (state.visited(s),)


INLINE_BEFORE = Rule("AlwaysInline", _before, _inline_all)
INLINE_INTO_COPIES = Rule("InlineIntoCopies", _into_copies, _inline)
