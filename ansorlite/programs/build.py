"""One program of a task, compiled to object code."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ansorlite.codegen.object import Compiled
from ansorlite.loops import printer
from ansorlite.platforms import finish
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task


def build_candidate(task: Task, candidate: Candidate) -> Compiled:
    """Compile one program.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    function = lower(task, candidate)
    return finish.build(replace(function, name=_symbol(task, candidate)), task.target)


def loops_key(task: Task, candidate: Candidate, compiled: Compiled) -> str:
    """By which records know a program that was built: the digest of the loops that run, whatever its symbol."""
    return printer.digest(compiled.loops.replace(_symbol(task, candidate), "kernel"))


def _symbol(task: Task, candidate: Candidate) -> str:
    """The name of its function: no two programs of a model have the same."""
    digest = hashlib.sha256(repr((task.key, task.target.key, candidate)).encode()).hexdigest()[:16]
    return f"kernel_{digest}"
