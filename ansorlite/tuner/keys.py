"""Canonical keys of candidates: equal for equal programs, so that no program is measured twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from ansorlite.errors import ScheduleError
from ansorlite.evolution.keys import keys
from ansorlite.loops.printer import digest, text
from ansorlite.search import SearchProblem
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task


class ProgramKeys:
    """The keys of one task's candidates: of programs of its spaces by their canonical numbers, of others by their loop IR."""

    def __init__(self, task: Task, problem: SearchProblem) -> None:
        self._task = task
        self._problem = problem
        self._known: dict[Candidate, str | None] = {}

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether the task has such a program; a record of another version, or one edited by hand, may be of none."""
        return self._key(candidate) is not None

    def __call__(self, candidates: Sequence[Candidate]) -> list[str]:
        """One key for each, in hex.

        Raises:
            ScheduleError: one is no program of the task.
        """
        found = [(candidate, self._key(candidate)) for candidate in candidates]
        wrong = next((candidate for candidate, key in found if key is None), None)
        if wrong is not None:
            lower(self._task, wrong)
        return [key for _, key in found if key is not None]

    def _key(self, candidate: Candidate) -> str | None:
        if candidate not in self._known:
            self._known[candidate] = self._made(candidate)
        return self._known[candidate]

    def _made(self, candidate: Candidate) -> str | None:
        found = self._problem.locate(candidate)
        if found is not None:
            position, row = found
            (canonical,) = keys(self._problem.spaces[position].space, np.array([row], np.int64))
            return hashlib.sha256(b"%d:" % position + canonical).hexdigest()
        try:
            return digest(text(lower(self._task, candidate)))
        except ScheduleError:
            return None
