"""The program that the analytical model prefers where nothing was measured: chosen once, then remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorlite import search, spaces
from ansorlite.best.keys import Identity, default_key, identity
from ansorlite.cache.disk import Cache, NoCache
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task

if TYPE_CHECKING:
    from ansorlite.sketch.sketch import Sketch
    from ansorlite.spaces.builders import SpaceBuilder


class Defaults:
    """Default programs of one space.

    Attributes:
        space: what makes the sketches; ``None``: the rules of a task's target. Of another one nothing is kept in the cache, as
            nothing says when it changes.
    """

    def __init__(self, cache: Cache, space: SpaceBuilder | None) -> None:
        self._cache = cache if space is None else NoCache()
        self.space = space
        self._chosen: dict[Identity, Candidate] = {}
        self._derived: tuple[Task, tuple[Sketch, ...]] | None = None

    def sketches(self, task: Task) -> tuple[Sketch, ...]:
        """Of the task asked about last they are kept: a program is chosen, then compiled."""
        if self._derived is None or self._derived[0] is not task:
            self._derived = task, spaces.sketches_of(task, self.space or spaces.Derived())
        return self._derived[1]

    def of(self, task: Task) -> Candidate:
        """Chosen now or before."""
        known = self.known(task)
        if known is not None:
            return known
        default = search.default_candidate(task, self.sketches(task))
        self.remember(task, default)
        return default

    def known(self, task: Task) -> Candidate | None:
        """The one that was chosen before."""
        if identity(task) not in self._chosen:
            known = self._cache.get(default_key(task))
            if known is None:
                return None
            self._chosen[identity(task)] = Candidate(known.decode())
        return self._chosen[identity(task)]

    def remember(self, task: Task, default: Candidate) -> None:
        """Keep what was chosen."""
        self._chosen[identity(task)] = default
        self._cache.put(default_key(task), default.trace.encode())
