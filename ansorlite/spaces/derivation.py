"""Derivation: from a task to its sketches (Ansor §4.1).

A worklist of states is taken through the rules, last stage first. When every stage has been visited, those without a
nest get one, or are attached to the nest that uses them (``settle.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansorlite.analysis.predicates import is_strictly_inlinable, moves_only
from ansorlite.platforms.table import platform_of
from ansorlite.rewrites.divide import divisible_axes
from ansorlite.rewrites.polyphase import phases
from ansorlite.rewrites.stages import fusible_axes
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.settle import settle
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.task import Task


def derive(task: Task, rules: Sequence[Rule] | None = None) -> tuple[Sketch, ...]:
    """The sketches of ``task``, the same ones in the same order every time.

    Args:
        rules: asked in order; those of the task's target when not given. Put a rule of your own in front of them to
            have it asked first.
    """
    sketches = (limited(Sketch(s.schedule.structure, s.schedule.trace, s.target)) for s in derived_states(task, rules))
    unique = {sketch.signature: sketch for sketch in sketches}
    return tuple(unique.values())


def limited(sketch: Sketch) -> Sketch:
    """The sketch with the constraints of the platform that it is for."""
    constraints = platform_of(sketch.target).constraints
    return sketch if sketch.constraints == constraints else replace(sketch, constraints=constraints)


def derived_states(task: Task, rules: Sequence[Rule] | None = None) -> list[State]:
    """Where the derivation ends; some may have one and the same trace."""
    order = tuple(platform_of(task.target).rules if rules is None else rules)
    work, finished = [_start(task)], []
    while work:
        state = work.pop(0)
        if not state.pending:
            finished.append(settle(state))
            continue
        for rule in order:
            verdict = rule.condition(state)
            if verdict is not Applicability.SKIP:
                work.extend(rule.apply(state))
            if verdict is Applicability.APPLY_AND_SKIP_REST:
                break
    return finished


def _start(task: Task) -> State:
    """The stages as the rules are to see them: the rewrites that always pay, done once."""
    s = Schedule(task.dag, task.target)
    while (found := next(phases(s.dag), None)) is not None:
        s.polyphase(s.stage(found.tensor)[found.axis], found.stride)
    while (division := next(divisible_axes(s.dag), None)) is not None:
        s.divide(s.stage(division.tensor)[division.axis], division.divisor)
    # Whoever reads what a transpose made decides about lanes and packing by where the elements really are.
    while moved := [stage.name for stage in s.dag.computes if moves_only(stage) and is_strictly_inlinable(s.dag, stage)]:
        s.inline(moved[0])
    if any(pairs := {tensor.name: dims for tensor, dims in fusible_axes(s.dag).items() if dims}):
        s.fuse_dimensions(tuple(pairs.items()))
    return State(s, task.target, tuple(t.name for t in reversed(s.dag.computes)))
