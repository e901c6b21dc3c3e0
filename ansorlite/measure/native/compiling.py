"""From a candidate to the bytes of its program."""

from __future__ import annotations

from ansorlite import search, spaces
from ansorlite.codegen.object import DeviceObject
from ansorlite.loops.printer import digest
from ansorlite.measure.backend import BuiltProgram
from ansorlite.platforms import finish
from ansorlite.programs.build import named, pack
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task


def build(task: Task, candidate: Candidate) -> BuiltProgram:
    """Compile one candidate."""
    function = lower(task, candidate)
    compiled = finish.build(named(task, candidate, function), task.target)
    return BuiltProgram(pack(compiled), digest(function), compiled.reports if isinstance(compiled, DeviceObject) else ())


def default(task: Task) -> Candidate:
    """The candidate to take where none was measured."""
    return search.default_candidate(task, spaces.derive(task))
