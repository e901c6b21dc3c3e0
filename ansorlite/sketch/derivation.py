"""Derivation: from a task to its sketches (Ansor §4.1).

A worklist of states is taken through the rules, last stage first. When every stage has been visited, those without a
nest get one, or are attached to the nest that uses them (``settle.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.analysis.predicates import is_strictly_inlinable, moves_only
from ansorlite.platforms.table import platform_of
from ansorlite.schedule.divide import divide, divisible_axes
from ansorlite.schedule.polyphase import phases, take_phases
from ansorlite.schedule.rewrite import fuse, without_unit_reductions
from ansorlite.schedule.steps import Divide, Fuse, Inline, Polyphase, Step
from ansorlite.sketch.settle import settle
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.task import Task
from ansorlite.te.rewriting import inline, with_unique_names


def derive(task: Task, rules: Sequence[Rule] | None = None) -> tuple[Sketch, ...]:
    """The sketches of ``task``, the same ones in the same order every time.

    Args:
        rules: asked in order; those of the task's target when not given. Put a rule of your own in front of them to
            have it asked first.
    """
    order = tuple(platform_of(task.target).rules if rules is None else rules)
    work, finished = [_start(task)], []
    while work:
        state = work.pop(0)
        if not state.pending:
            finished.append(settle(state))
            continue
        for rule in order:
            verdict = rule.condition(state)
            if verdict is not Verdict.SKIP:
                work.extend(rule.apply(state))
            if verdict is Verdict.APPLY_AND_SKIP_REST:
                break
    unique = {sketch.signature: sketch for sketch in (Sketch(s.dag, s.steps, s.target) for s in finished)}
    return tuple(unique.values())


def _start(task: Task) -> State:
    """The stages as the rules are to see them: the rewrites that always pay, done once."""
    plain = without_unit_reductions(with_unique_names(task.dag))
    steps: list[Step] = []
    while (found := next(phases(plain), None)) is not None:
        steps.append(Polyphase(found.tensor.name, found.axis.name, found.stride))
        plain = without_unit_reductions(take_phases(plain, found))
    while (division := next(divisible_axes(plain), None)) is not None:
        steps.append(Divide(division.tensor.name, division.axis.name, division.divisor))
        plain = without_unit_reductions(divide(plain, division))
    plain = with_unique_names(plain)
    # Whoever reads what a transpose made decides about lanes and packing by where the elements really are.
    while moved := [stage.name for stage in plain.computes if moves_only(stage) and is_strictly_inlinable(plain, stage)]:
        steps.append(Inline(moved[0]))
        plain = inline(plain, moved[0])
    fused = fuse(plain)
    changed = tuple(t.name for t, f in zip(plain.tensors, fused.tensors, strict=True) if t is not f and t.shape != f.shape)
    steps += [Fuse(changed)] if changed else []
    return State(fused, task.target, tuple(steps), tuple(t.name for t in reversed(fused.computes)))
