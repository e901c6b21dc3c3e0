"""Object code of programs, as bytes: compiled now, or before by any process that has the same cache."""

from __future__ import annotations

from ansorlite import programs
from ansorlite.best.keys import object_key
from ansorlite.cache.disk import Cache
from ansorlite.programs.packing import pack
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


class _BrokenProgramError(Exception):
    """What a builder process says of a program that does not compile."""


class Objects:
    """The programs that were asked for, or compiled in advance."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._built: dict[str, bytes] = {}
        self._broken: dict[str, str] = {}

    def packed(self, task: Task, candidate: Candidate) -> bytes:
        """The program, compiled now or before.

        Raises:
            Exception: it does not compile.
        """
        broken = self._broken.get(object_key(task, candidate))
        if broken is not None:
            raise _BrokenProgramError(broken)
        known = self.known(task, candidate)
        if known is None:
            known = pack(programs.build_candidate(task, candidate))
            self.add(task, candidate, known)
        return known

    def known(self, task: Task, candidate: Candidate) -> bytes | None:
        """What was compiled before, read from the cache once."""
        key = object_key(task, candidate)
        known = self._built.get(key) or self._cache.get(key)
        if known is not None:
            self._built[key] = known
        return known

    def add(self, task: Task, candidate: Candidate, artifact: bytes) -> None:
        """Keep what was compiled."""
        key = object_key(task, candidate)
        self._built[key] = artifact
        self._cache.put(key, artifact)

    def fail(self, task: Task, candidate: Candidate, error: str) -> None:
        """It does not compile: who asks for it is told why."""
        self._broken[object_key(task, candidate)] = error

    def release(self, task: Task, candidate: Candidate) -> None:
        """Its kernel is loaded: from now on the cache alone has the bytes."""
        self._built.pop(object_key(task, candidate), None)
