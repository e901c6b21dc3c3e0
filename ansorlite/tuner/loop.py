"""The loop that joins everything: the scheduler picks a task, its strategy proposes, the measurer measures, the database keeps.

Nothing here knows how any of them does its work; each is handed in, so that tests hand in their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Final, Protocol

from ansorlite import visible
from ansorlite.errors import ArgumentError, TuningError
from ansorlite.records.database import Database
from ansorlite.records.hints import hints
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.task_scheduler import Share, TaskScheduler
from ansorlite.tuner.clock import PhaseClock
from ansorlite.tuner.events import Finished, Listener, Measured, RoundFinished, Started
from ansorlite.tuner.interrupt import Interrupts
from ansorlite.tuner.result import Stop, Trial, TuneResult
from ansorlite.tuner.state import TaskState

_log = visible.logger(__name__)

#: The most candidates that one round measures, so that the model is fitted anew at least this often.
MAX_ROUND: Final = 16
#: The fewest, so that workers compile side by side.
MIN_ROUND: Final = 4
#: The last trials are kept back to compare the best of each task once more with its rival, at another time than when it became
#: the best, as what else the machine does may favour the wrong one for a while. Not more than one in so many, and as much of the
#: time limit.
CONFIRMING: Final = 16

#: The share of a task's time that its loops as written may take, which are timed for comparison only,
_COMPARING: Final = 1 / 20
#: where a trial is taken for so many seconds: most take less.
_PACE: Final = 0.1


def round_size(left: int, most: int = MAX_ROUND, tasks: int = 1) -> int:
    """Programs of the next round where so many trials are left: few at the end, so that the last ones are well chosen."""
    return min(left, max(MIN_ROUND, min(most, left // (2 * tasks))))


def _checked(share: object) -> Share | None:
    """What a scheduler gave.

    Raises:
        ArgumentError: it is no share.
    """
    if share is None or (isinstance(share, Share) and (share.trials is None or share.trials > 0)):
        return share
    raise ArgumentError(f"the scheduler gave {share!r}; it must give a Share(task, trials), or None where no task can use one")


def _proposed(given: object, most: int) -> list[Candidate]:
    """What a strategy gave.

    Raises:
        ArgumentError: it is no list of candidates, or has too many.
    """
    if isinstance(given, list | tuple) and len(given) <= most and all(isinstance(each, Candidate) for each in given):
        return list(given)
    shown = repr(given)
    raise ArgumentError(
        f"the strategy proposed {shown if len(shown) <= 100 else shown[:99] + '…'}; it must give a list of at most {most} "
        "candidates, each as candidate(row) of a space of the problem makes it"
    )


class Measures(Protocol):
    """What the loop needs of ``measure.Measurer``."""

    def measure(self, task: Task, candidates: Sequence[Candidate], best: Measurement | None) -> Iterator[Measurement]:
        """One measurement for each candidate, in order, as they are done.

        The loop may leave before the last. Latencies of one task are in one unit. One that is ``checked`` can become the best.

        Args:
            best: the best measurement of the task so far; what is far slower need not be measured to the end.
        """
        ...


class Tuner:
    """One run of tuning. Make one, call :meth:`run` once.

    Args:
        states: the tasks, each with its weight and its strategy.
        trials: measurements to be made in all, those in the database included.
        time_limit: seconds after which to stop; a batch in flight is given up, and no program is begun that is expected
            to end later.
        open_measurer: gives what measures; called only when there is something to measure.
        listener: told every event.
        elsewhere: whether programs are timed on another machine than this one: the records of such count, then, and no others.
        round_size: the most programs of one round.
        clock: what tells how much of the time limit is over; by default none of it.
    """

    def __init__(
        self,
        states: Sequence[TaskState],
        *,
        trials: int,
        time_limit: float | None,
        database: Database,
        scheduler: TaskScheduler,
        open_measurer: Callable[[], AbstractContextManager[Measures]],
        listener: Listener,
        elsewhere: bool = False,
        round_size: int = MAX_ROUND,
        clock: PhaseClock | None = None,
    ) -> None:
        self._states = tuple(states)
        self._limit = trials
        self._time_limit = time_limit
        self._database = database
        self._scheduler = scheduler
        self._open_measurer = open_measurer
        self._listener = listener
        self._elsewhere = elsewhere
        self._most = round_size
        self._clock = clock or PhaseClock()
        self._begun = self._clock.elapsed
        self._history: list[Trial] = []
        self._restored = 0
        self._confirming = False
        self._longest = 0.0  # seconds of one program that ran, compiled, timed and checked
        self._interrupts = Interrupts()

    def run(self) -> TuneResult:
        """Tune until the trials or the time are spent, every strategy is at its end, or Ctrl-C.

        Raises:
            TuningError: no program of any task runs, not even the loops as written.
        """
        try:
            with self._interrupts.watched():
                stopped = self._run()
                self._interrupts.check()
        except KeyboardInterrupt:
            stopped = Stop.INTERRUPTED
        result = self._result(stopped)
        if not result.interrupted and self._history and all(state.best is None for state in self._states):
            error = next((trial.error for trial in self._history if trial.error), "no reason known")
            raise TuningError(f"no program runs, not even the loops as written: {error}")
        self._listener(Finished(result))
        return result

    def _run(self) -> Stop:
        tasks = tuple((state.task, sum(state.uses)) for state in self._states)
        self._listener(Started(tasks, self._limit, self._time_limit, self._begun))
        self._restore()
        stopped = self._reason
        if not self._finished or (self._unconfirmed and len(self._history) < self._limit):
            with self._open_measurer() as measurer:
                self._search(measurer)
                stopped = self._reason
                self._confirm(measurer)
        return stopped

    @property
    def _finished(self) -> bool:
        """Whether all is spent, but for what is kept back until the search is over."""
        return self._trials_left <= 0 or self._late

    @property
    def _trials_left(self) -> int:
        kept = 0 if self._confirming else len(self._unconfirmed)
        return self._limit - len(self._history) - min(kept, self._limit // CONFIRMING)

    @property
    def _time_left(self) -> float:
        """Seconds until the limit; of the search, until the time that is kept back."""
        if self._time_limit is None:
            return math.inf
        kept = 0.0
        if not self._confirming:
            kept = max(self._time_limit / CONFIRMING, self._longest if self._to_confirm else 0.0)
        return self._time_limit - kept - self._clock.elapsed

    @property
    def _late(self) -> bool:
        """Whether one more program, if it takes as long as those before did, ends after the limit.

        It runs beside the best, so it takes a call of both at least, which the first program of all does not. Comparing the best
        once more takes as long as the longest of them: of two that are about equal most pairs are taken.
        """
        mean = self._clock.alone / self._fresh if self._fresh else 0.0
        calls = 2 * min((state.best_latency for state in self._states if state.best_latency is not None), default=0.0)
        return self._time_left <= (self._longest if self._confirming else max(mean, calls))

    @property
    def _fresh(self) -> int:
        """Trials that were measured now."""
        return len(self._history) - self._restored

    @property
    def _reason(self) -> Stop:
        """Why the search has come to an end by itself."""
        return Stop.TRIALS if self._trials_left <= 0 else Stop.TIME if self._late else Stop.GAIN

    @property
    def _unconfirmed(self) -> list[int]:
        """The tasks whose best could be compared once more, those first that matter most."""
        found = [n for n, state in enumerate(self._states) if state.first and not state.confirmed and state.rival is not None]
        return sorted(found, key=lambda n: -sum(self._states[n].uses) * (self._states[n].best_latency or 0.0))

    @property
    def _to_confirm(self) -> list[int]:
        """Those of them that are compared once more, as many as the trials so far allow."""
        return self._unconfirmed[: len(self._history) // (CONFIRMING - 1)]

    def _restore(self) -> None:
        """Take up what was measured on the machine in question: these measurements are not made again. Of others the best few are
        tried."""
        stale = elsewhere = 0
        for index, state in enumerate(self._states):
            measured = [record.measurement for record in self._database.records_of(state.task)]
            usable = [m for m in measured if m.candidate in state.keys]
            known = [m for m in usable if self._counts(m)]
            stale += len(measured) - len(usable)
            elsewhere += len(usable) - len(known)
            state.hints = tuple(hints(usable, state.keys.__contains__, self._counts))
            for begin in range(0, len(known), MAX_ROUND):
                # A share at a time, so that the scheduler sees how the best came about.
                share = known[begin : begin + MAX_ROUND]
                for measurement in share:
                    self._note(index, measurement, restored=True)
                self._scheduler.update(index, state.best_latency, len(share))
            if known:
                with self._clock.search():
                    state.strategy.observe([m.observation for m in known])
        self._restored = len(self._history)
        if stale:
            _log.warning(
                "records that are no programs of their tasks (of another version, or changed by hand) do not apply: %d", stale
            )
        if elsewhere:
            _log.warning(
                "records that were made on another machine: %d; their latencies do not count here, but the programs that they "
                "recommend are measured first",
                elsewhere,
            )
        self._database.warn()

    def _counts(self, measurement: Measurement) -> bool:
        """Whether a record's latency is of the machine in question."""
        return measurement.ours and bool(measurement.machine) == self._elsewhere

    def _search(self, measurer: Measures) -> None:
        self._measure_first(measurer)
        rounds = 0
        while not self._finished:
            with self._clock.search():
                share = _checked(self._scheduler.next())
                batch = {} if share is None else self._proposals(self._states[share.task], share.trials)
            if share is None:
                break
            index = share.task
            rounds += 1
            measured = self._measure(measurer, index, batch)
            self._observe(index, measured)
            logs = self._states[index].strategy.rounds
            self._listener(RoundFinished(index, rounds, logs[-1] if logs else None, self._scheduler.expected_gain()))

    def _confirm(self, measurer: Measures) -> None:
        """Compare the best of each task once more with its rival. A rival that is faster now is recorded as the faster one."""
        self._confirming = True
        for index in self._to_confirm:
            state = self._states[index]
            if not self._finished and state.rival is not None:
                (key,) = state.keys([state.rival])
                self._observe(index, self._measure(measurer, index, {key: state.rival}))

    def _measure_first(self, measurer: Measures) -> None:
        """There is an answer at once, and the loops as written to compare with, not waited for where they are far slower."""
        for index, state in enumerate(self._states):
            for candidate in self._before_the_search(state):
                first = state.unseen([candidate])
                if first and not self._finished:
                    self._observe(index, self._measure(measurer, index, first))

    def _before_the_search(self, state: TaskState) -> Iterator[Candidate]:
        """What is measured of a task before its strategy is asked; each is drawn when the one before was observed."""
        yield from state.first
        if state.first and not state.sound:
            yield from takewhile(lambda _: not state.sound, state.spare())
        yield from state.hints
        yield from self._to_compare_with(state)

    def _to_compare_with(self, state: TaskState) -> tuple[Candidate, ...]:
        """The loops as written, unless a call of them is expected to take too much of the time that the task has."""
        seconds = _PACE * self._limit if self._time_limit is None else min(self._time_limit, _PACE * self._limit)
        return (NAIVE,) if state.naive_estimate() <= _COMPARING * seconds / len(self._states) else ()

    def _proposals(self, state: TaskState, trials: int | None) -> dict[str, Candidate]:
        left = self._trials_left
        size = min(left, self._round_size(state, left) if trials is None else min(trials, self._in_time()))
        return state.unseen(_proposed(state.strategy.propose(size), size))

    def _round_size(self, state: TaskState, left: int) -> int:
        """Rounds are short at first, so that every task of a model has something better than naive soon, and at the end."""
        if len(self._states) > 1 and state.trials < MIN_ROUND:
            return MIN_ROUND
        return min(self._in_time(), round_size(left, self._most, len(self._states)))

    def _in_time(self) -> int:
        """How many more trials the time limit leaves room for, at the pace so far."""
        if self._time_limit is None or not self._fresh:
            return self._most
        return max(1, int(self._time_left * self._fresh / (self._clock.elapsed - self._begun)))

    def _measure(self, measurer: Measures, index: int, batch: Mapping[str, Candidate]) -> list[Measurement]:
        state, candidates = self._states[index], list(batch.values())
        measured: list[Measurement] = []
        with self._clock.measuring():
            for measurement in measurer.measure(state.task, candidates, state.best):
                with self._interrupts.deferred():
                    self._database.add(state.task, measurement)
                    self._note(index, measurement, restored=False)
                measured.append(measurement)
                if self._late:
                    break
        return measured

    def _observe(self, index: int, measured: Sequence[Measurement]) -> None:
        """Tell strategy and scheduler. No measurement at all says to the scheduler that the task is at its end."""
        state = self._states[index]
        with self._clock.search():
            state.strategy.observe([m.observation for m in measured])
            self._scheduler.update(index, state.best_latency, len(measured), math.fsum(m.seconds.total for m in measured))

    def _note(self, index: int, measurement: Measurement, restored: bool) -> None:
        self._states[index].add(measurement)
        ran = measurement.outcome is Outcome.OK
        if not restored:
            seconds = measurement.seconds
            self._clock.busy(compile=seconds.build, measure=seconds.run, check=seconds.check)
            if ran:
                self._longest = max(self._longest, seconds.total)
        trial = Trial(
            task=index,
            candidate=measurement.candidate,
            outcome=measurement.outcome,
            latency=measurement.latency if ran else None,
            error=None if ran else measurement.error or measurement.outcome.value,
            at=0.0 if restored else self._clock.elapsed,
            restored=restored,
            spilled=measurement.spilled,
        )
        self._history.append(trial)
        self._listener(Measured(trial))

    def _result(self, stopped: Stop) -> TuneResult:
        tasks = tuple(state.result() for state in self._states)
        seconds = self._clock.elapsed
        return TuneResult(
            best_latency=math.fsum(task.weight * task.best_latency for task in tasks),
            trials=len(self._history),
            restored=self._restored,
            seconds=seconds,
            history=tuple(self._history),
            tasks=tasks,
            phases=self._clock.phases(seconds),
            stopped=stopped,
            expected_gain=self._scheduler.expected_gain(),
        )
