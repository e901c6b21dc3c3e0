"""From a candidate to the bytes of its program."""

from __future__ import annotations

from ansorlite import search, spaces
from ansorlite.codegen.object import DeviceObject
from ansorlite.measure.backend import BuiltProgram
from ansorlite.programs.build import build_candidate, loops_key
from ansorlite.programs.packing import pack
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


def build(task: Task, candidate: Candidate) -> BuiltProgram:
    """Compile one candidate."""
    compiled = build_candidate(task, candidate)
    reports = compiled.reports if isinstance(compiled, DeviceObject) else ()
    return BuiltProgram(pack(compiled), loops_key(task, candidate, compiled), reports)


def default(task: Task) -> Candidate:
    """The candidate to take where none was measured."""
    return search.default_candidate(task, spaces.derive(task))
