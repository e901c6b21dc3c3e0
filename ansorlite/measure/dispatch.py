"""Candidates to many builders at once, wherever these are: none waits for work while there is some, and none is lost with its
builder.

A builder is given the next candidate before it is done with the one before. What a builder had that is gone goes to another one;
the candidate that it was busy with only once: perhaps that was the reason. Then it is a failure that says so.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from ansorlite import visible
from ansorlite.errors import TuningError
from ansorlite.measure.roles import Built, Failure
from ansorlite.measure.verdict import Verdict
from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task

_log = visible.logger(__name__)

#: So many candidates each builder has: one that it compiles, and one for the moment when it is done.
_DEPTH: Final = 2
#: A candidate is given away again after the loss of the builder that compiled it, until so many have been lost.
_LOSSES: Final = 2
#: Seconds between two looks for builders that are late, or new.
_LOOK: Final = 1.0
_HIRE: Final = 5.0


class Station(Protocol):
    """One builder, somewhere. It compiles one candidate after another, in the order in which it is asked."""

    @property
    def ready(self) -> Future[None]:
        """Done when it can be asked; an error if it never can."""

    def ask(self, task: Task, candidate: Candidate) -> Future[Built]:
        """What is to become of a candidate; an error if the builder is lost meanwhile."""

    def end(self) -> None:
        """End it, whatever it does."""


class Hiring(Protocol):
    """Finds builders."""

    def hire(self, stations: Sequence[Station]) -> Sequence[Station]:
        """More, where there is room for them beside ``stations``; perhaps none."""

    @property
    def aside(self) -> bool:
        """Whether they compile on other machines than those that time."""


@dataclass
class _Asked:
    at: int
    answer: Future[Built]


@dataclass
class _Work:
    """What a station has.

    Attributes:
        since: when it began with the first of it.
    """

    asked: deque[_Asked] = field(default_factory=deque)
    since: float = 0.0


_Event: TypeAlias = "tuple[Station, Future[None] | Future[Built]]"


class Dispatcher:
    """Keeps stations busy."""

    def __init__(self, hiring: Hiring, seconds: float, wait_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            seconds: after which a station that has not answered is given up.
            wait_seconds: so long a station is waited for where there is none.
        """
        self._hiring = hiring
        self._seconds = seconds
        self._wait_seconds = wait_seconds
        self._now = now
        self._starting: list[Station] = []
        self._ready: dict[Station, _Work] = {}
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._hired = -_HIRE
        self._reason = "none has a core to spare"

    def close(self) -> None:
        """End all stations."""
        for station in self._stations:
            station.end()
        self._starting, self._ready = [], {}

    @property
    def size(self) -> int:
        """How many there are, those that start included."""
        return len(self._stations)

    @property
    def _stations(self) -> list[Station]:
        return [*self._starting, *self._ready]

    def hire(self) -> None:
        """Look for more stations."""
        self._hired = self._now()
        for station in self._hiring.hire(self._stations):
            self._starting.append(station)
            station.ready.add_done_callback(lambda future, station=station: self._events.put((station, future)))  # type: ignore[misc]

    def forget(self) -> None:
        """All stations are gone, and the engine that carried them."""
        self._starting, self._ready = [], {}

    def build(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        """One result for each candidate, in order, as they come; all before the first where they compile on machines that time.

        Raises:
            TuningError: there is no station, and none came in time.
        """
        batch = _Batch(task, candidates)
        if self._now() - self._hired >= _HIRE:
            self.hire()
        try:
            for due in range(len(candidates)):
                self._hear(batch, 0.0)
                while due not in batch.results or (not self._hiring.aside and batch.left):
                    self._hear(batch, _LOOK)
                yield batch.results.pop(due)
        finally:
            for station in [station for station, work in self._ready.items() if work.asked]:  # nobody waits for these
                self._drop(station)

    def _hear(self, batch: _Batch, seconds: float) -> None:
        """Give away what can be, and take note of what comes within so many seconds: of the first, and what is there with it."""
        self._assign(batch)
        try:
            while True:
                station, future = self._events.get(timeout=seconds) if seconds else self._events.get_nowait()
                self._note(batch, station, future)
                seconds = 0.0
        except queue.Empty:
            pass
        self._look(batch)
        self._assign(batch)

    def _assign(self, batch: _Batch) -> None:
        """The next candidates, to those first that have least."""
        for depth in range(_DEPTH):
            for station, work in list(self._ready.items()):
                if not batch.waiting:
                    return
                if len(work.asked) == depth:
                    self._ask(batch, station, work)

    def _ask(self, batch: _Batch, station: Station, work: _Work) -> None:
        at = batch.waiting.popleft()
        answer = station.ask(batch.task, batch.candidates[at])
        if not work.asked:
            work.since = self._now()
        work.asked.append(_Asked(at, answer))
        answer.add_done_callback(lambda future: self._events.put((station, future)))

    def _note(self, batch: _Batch, station: Station, future: Future[None] | Future[Built]) -> None:
        if station in self._starting:
            self._starting.remove(station)
            error = future.exception()
            if error is None:
                self._ready[station] = _Work()
            else:
                self._reason = str(error)
                station.end()
        elif station in self._ready:
            work = self._ready[station]
            if not work.asked or future is not work.asked[0].answer:
                return  # it is not this one's turn, or of what nobody waits for any more
            while work.asked and work.asked[0].answer.done():
                answer = work.asked[0].answer
                if (error := answer.exception()) is not None:
                    return self._lose(batch, station, str(error))
                batch.put(work.asked.popleft().at, answer.result())
                work.since = self._now()
        return None

    def _look(self, batch: _Batch) -> None:
        """Give up stations that are late; find others."""
        now = self._now()
        for station, work in list(self._ready.items()):
            if work.asked and now - work.since > self._seconds:
                self._lose(batch, station, f"no answer within {self._seconds:.0f} s")
        if batch.left and now - self._hired >= _HIRE:
            self.hire()
        if self._ready or not batch.left:
            batch.alone = None
        elif batch.alone is None:
            batch.alone = now
        elif now - batch.alone > self._wait_seconds:
            raise TuningError(f"no machine that compiles programs came within {self._wait_seconds:.0f} s: {self._reason}")

    def _lose(self, batch: _Batch, station: Station, reason: str) -> None:
        """The station is gone. The first of what it had is what it was busy with; the rest it had not begun."""
        _log.warning("a machine that compiles was lost: %s", reason)
        self._reason = reason
        asked = list(self._ready[station].asked)
        self._drop(station)
        if asked:
            first = asked[0].at
            batch.losses[first] = batch.losses.get(first, 0) + 1
            if batch.losses[first] >= _LOSSES:
                said = f"the machines that compiled it were lost, {_LOSSES} of them: {reason}"
                batch.put(first, Failure(batch.candidates[first], Verdict(Outcome.CRASH, said), 0.0, time.time(), lost=True))
                asked = asked[1:]
        batch.waiting.extendleft(each.at for each in reversed(asked))
        self._hired = -_HIRE  # there is room again

    def _drop(self, station: Station) -> None:
        del self._ready[station]
        station.end()


class _Batch:
    """The candidates of one call.

    Attributes:
        waiting: which nobody has, by number.
        results: by number, until they are asked for.
        losses: how many stations were lost that compiled a candidate.
        alone: since when there is no station.
    """

    def __init__(self, task: Task, candidates: Sequence[Candidate]) -> None:
        self.task = task
        self.candidates = candidates
        self.waiting = deque(range(len(candidates)))
        self.results: dict[int, Built] = {}
        self.losses: dict[int, int] = {}
        self.alone: float | None = None
        self._compiled = 0

    @property
    def left(self) -> bool:
        """Whether something is not compiled yet."""
        return self._compiled < len(self.candidates)

    def put(self, at: int, built: Built) -> None:
        self.results[at] = built
        self._compiled += 1
