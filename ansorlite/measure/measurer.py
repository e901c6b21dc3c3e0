"""From candidates to measurements.

The road of a batch: a builder compiles it; runners take the programs one by one, check the output of each and time it, in turns
with the best program so far. How much faster or slower it is counts, so that all latencies of a task are in one unit, whatever
else the machine does meanwhile. The best of an earlier run is checked and timed again first: what is stopped for being slow is
compared with the machine as it is now.

Several runners share the candidates of a task once each has timed the best: a candidate is compared with the best on the machine
that it runs on, never with a number of another one. Until there is a best, the first runner is alone.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

from ansorlite import visible
from ansorlite.errors import TuningError
from ansorlite.measure.likeness import Speeds, difference, speeds_of
from ansorlite.measure.local import local_workers
from ansorlite.measure.roles import Artifact, Built, Failure, LostError, OpenWorkers, Ran, Rival, Runner
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import Streak, Verdict
from ansorlite.records.measurement import Measurement, Outcome, Seconds
from ansorlite.runtime.peaks import measure_flops
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, obstacle, resolve
from ansorlite.task import Task
from ansorlite.version import __version__

_log = visible.logger(__name__)

#: Candidates per builder in one batch: enough that no builder waits long for the slowest, few enough that results flow.
_BATCH_PER_BUILDER: Final = 8

#: Seconds between two tries to get a lost machine back, where none is left, and where others are.
_RETRY: Final = 1.0
_RETRY_LOST: Final = 30.0

_T = TypeVar("_T")
_Result: TypeAlias = "Future[tuple[Ran | None, str]]"


@dataclass
class _Best:
    """The program to beat.

    Attributes:
        latency: seconds as its measurement says it, the unit of all latencies of the task.
    """

    artifact: Artifact
    latency: float


@dataclass
class _Lane:
    """A runner, and what it has timed.

    Attributes:
        rivals: by task key: the best program, as this machine timed it.
        lost: why it is gone, if it is.
    """

    runner: Runner
    rivals: dict[str, Rival] = field(default_factory=dict)
    lost: str = ""


class Measurer:
    """Measures candidates. Use it as a context manager: leaving it ends all that it started.

    A candidate that crashes, hangs, eats memory or computes the wrong thing costs one measurement, which says so; a machine that
    is lost costs one for each program that it had.
    """

    def __init__(
        self,
        target: str | Target = "llvm",
        settings: MeasureSettings | None = None,
        open_workers: OpenWorkers = local_workers,
    ) -> None:
        """Start the workers.

        Args:
            target: the machine to measure on.
            settings: limits, repeats, number of workers.
            open_workers: what builds and runs; by default processes of this machine.

        Raises:
            TargetError: an unknown target, or one whose code cannot run there.
            TuningError: the machines cannot be reached.
        """
        self.target = resolve(target)
        self.settings = settings or MeasureSettings()
        self._bests: dict[str, _Best] = {}
        self._streak = Streak()
        self._lock = threading.Lock()
        workers = open_workers(self.target, self.settings)
        self._builder = workers.builder
        self._ahead = workers.ahead
        self._built: dict[tuple[str, Candidate], Built] = {}  # by task key; ahead, until they are measured
        self._lanes = [_Lane(runner) for runner in workers.runners]
        self._speeds: Speeds | None = None
        self._tried = 0.0
        self._peak: float | None = None

    def close(self) -> None:
        """End the workers, whatever they do. Closing twice does nothing."""
        self._builder.close()
        for lane in self._lanes:
            lane.runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def build_ahead(self, programs: Sequence[tuple[Task, Candidate | None]]) -> Generator[tuple[Task, Candidate], None, None]:
        """Compile what will be measured first of many tasks side by side, where workers do that; measuring it only runs it then.

        Args:
            programs: where there is no candidate, the default one is chosen.

        Returns:
            what was compiled, as it is done; closing it leaves the rest.

        Raises:
            TuningError: the workers cannot start.
        """
        if self._ahead is None:
            return
        with closing(self._ahead.each(programs)) as each:
            for number, built in each:
                task = programs[number][0]
                self._built[task.key, built.candidate] = built
                yield task, built.candidate

    def measure(
        self,
        task: Task,
        candidates: Sequence[Candidate],
        best: Measurement | None = None,
    ) -> Iterator[Measurement]:
        """Measure candidates of one task; yields one measurement for each, in order, as they are done.

        Args:
            best: the best measurement known, from a database say. What is measured here is remembered without it.

        Raises:
            MemoryLimitError: the machine has less memory than the inputs and outputs need.
            TuningError: the workers cannot start, the task itself cannot be evaluated, no machine that times programs is left, or
                the same failure happened :attr:`MeasureSettings.identical_failures` times in a row. Says what happened first.
        """
        self._compare_machines()
        self._first(lambda lane: lane.runner.prepare(task))
        self._know(task, best)
        size = self._builder.size * _BATCH_PER_BUILDER
        for start in range(0, len(candidates), size):
            built = self._compiled(task, candidates[start : start + size])
            for program, ran, machine in self._timed(task, built):
                if self._peak is None and any(not lane.runner.machine for lane in self._lanes):
                    self._peak = _peak_of(self.target)  # now: nothing compiles beside it
                peak = 0.0 if machine or self._peak is None else self._peak
                measurement = replace(_measurement(program, ran, machine), peak=peak)
                yield measurement
                if not (program.lost if isinstance(program, Failure) else ran is not None and ran.lost):
                    self._give_up_if_hopeless(measurement)

    # One step each ------------------------------------------------------------------------------------------------

    def _compiled(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        """Each candidate, built now if it was not before."""
        known = {candidate: self._built.pop((task.key, candidate), None) for candidate in candidates}
        built = self._builder.build(task, [candidate for candidate in candidates if known[candidate] is None])
        for candidate in candidates:
            yield known[candidate] or next(built)

    def _compare_machines(self) -> None:
        """Leave out the machines that are not like the first: what they would say of a program is not comparable."""
        if self._speeds is None and len(self._lanes) > 1:
            self._speeds = self._first(lambda lane: speeds_of(lane.runner, self._builder, self.target))
            for lane in self._standing()[1:]:
                self._admit(lane)

    def _admit(self, lane: _Lane) -> None:
        """Let a machine count if it is as fast as the first."""
        if self._speeds is None:
            return
        try:
            why = difference(self._speeds, speeds_of(lane.runner, self._builder, self.target), self.settings.alike)
        except LostError as error:
            return self._lose(lane, error)
        if why:
            _log.warning("%s is not used to time programs: %s", lane.runner.machine, why)
            lane.runner.close()
            self._lanes.remove(lane)

    def _first(self, do: Callable[[_Lane], _T]) -> _T:
        """What ``do`` gives of the first machine that is not lost meanwhile."""
        while True:
            lane = self._standing()[0]
            try:
                return do(lane)
            except LostError as error:
                self._lose(lane, error)

    def _standing(self) -> list[_Lane]:
        """The machines that are there; waits for one if there is none.

        Raises:
            TuningError: none came back in time.
        """
        lost = [lane for lane in self._lanes if lane.lost]
        if len(lost) == len(self._lanes):
            self._await(lost)
        elif lost and time.monotonic() - self._tried > _RETRY_LOST:
            self._revive(lost)
        return [lane for lane in self._lanes if not lane.lost]

    def _await(self, lost: Sequence[_Lane]) -> None:
        seconds, reason = self.settings.wait_seconds, f"{lost[0].runner.machine or 'this machine'}: {lost[0].lost}"
        _log.warning("no machine that times programs is left (%s); waiting %.0f s for one to come back", reason, seconds)
        until = time.monotonic() + seconds
        while not self._revive(lost):
            if time.monotonic() >= until:
                raise TuningError(f"no machine that times programs came back within {seconds:.0f} s; lost: {reason}")
            time.sleep(min(_RETRY, seconds))

    def _revive(self, lost: Sequence[_Lane]) -> bool:
        """Try to get machines back; whether one is."""
        self._tried = time.monotonic()
        for lane in lost:
            if lane.runner.revive():
                _log.warning("%s is back", lane.runner.machine or "this machine")
                lane.lost = ""
                lane.rivals.clear()
                self._admit(lane)
        return any(not lane.lost for lane in self._lanes)

    def _lose(self, lane: _Lane, error: LostError) -> None:
        _log.warning("%s was lost: %s", lane.runner.machine or "this machine", error)
        lane.lost = str(error) or "no reason known"

    def _know(self, task: Task, best: Measurement | None) -> None:
        """Have the program of ``best`` at hand, if it is news: checked, and timed as fast as the machine is now."""
        known = self._bests.get(task.key)
        if best is None or best.latency is None or (known is not None and known.latency <= best.latency):
            return
        (program,) = self._builder.build(task, [best.candidate])
        if isinstance(program, Failure):
            return self._not_used(task, "compile", program.verdict)

        def again(lane: _Lane) -> tuple[_Lane, Ran]:
            (ran,) = lane.runner.run(task, [program], None)
            return lane, ran

        lane, ran = self._first(again)
        if ran.verdict.outcome is not Outcome.OK or ran.latency is None:
            return self._not_used(task, "run", ran.verdict)
        self._bests[task.key] = _Best(program, best.latency)
        lane.rivals[task.key] = Rival(program, ran.latency)
        return None

    def _not_used(self, task: Task, what: str, verdict: Verdict) -> None:
        _log.warning("the best record of task %s does not %s and is not used: %s", task.key, what, verdict.error)

    def _timed(self, task: Task, built: Iterator[Built]) -> Iterator[tuple[Built, Ran | None, str]]:
        """Each program, what became of it, and on which machine; in order."""
        while (program := next(built, None)) is not None:
            lanes = self._standing()
            if len(lanes) == 1 or task.key not in self._bests:
                yield (program, *self._on(lanes[0], task, program))
            else:
                yield from self._shared(task, itertools.chain([program], built), lanes)

    def _shared(self, task: Task, built: Iterator[Built], lanes: Sequence[_Lane]) -> Iterator[tuple[Built, Ran | None, str]]:
        """The same on several machines at once, each of which takes the next program when it has time; until all are lost."""
        idle = deque(lanes)
        running: dict[_Result, _Lane] = {}
        due: deque[tuple[Built, _Result]] = deque()
        with ThreadPoolExecutor(len(lanes), "ansorlite-machine") as pool:
            while True:
                while idle and (program := next(built, None)) is not None:
                    lane = idle.popleft()
                    result = pool.submit(self._on, lane, task, program)
                    running[result] = lane
                    due.append((program, result))
                while due and due[0][1].done():
                    program, result = due.popleft()
                    yield (program, *result.result())
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                idle += [lane for lane in map(running.pop, done) if not lane.lost]

    def _on(self, lane: _Lane, task: Task, program: Built) -> tuple[Ran | None, str]:
        """What became of a program on a machine, and that machine's name."""
        if isinstance(program, Failure):
            return None, ""
        machine, start = lane.runner.machine, time.perf_counter()
        try:
            return self._run(lane, task, program), machine
        except LostError as error:
            self._lose(lane, error)
            reason = f"{machine or 'this machine'} was lost while it had this program: {error}"
            return Ran(Verdict(Outcome.CRASH, reason), None, time.perf_counter() - start, lost=True), machine

    def _run(self, lane: _Lane, task: Task, program: Artifact) -> Ran:
        """Check and time one program; its latency is in the task's unit."""
        best = self._bests.get(task.key)
        rival = None if best is None else self._rival(lane, task, best)
        (ran,) = lane.runner.run(task, [program], rival)
        now = ran.latency
        latency = now if now is None or best is None or rival is None else now * (best.latency / rival.now)
        with self._lock:
            best = self._bests.get(task.key)
            wins = best is None or (latency is not None and latency < best.latency)
            if ran.verdict.outcome is Outcome.OK and now is not None and latency is not None and wins:
                self._bests[task.key] = _Best(program, latency)
                lane.rivals[task.key] = Rival(program, now)
        return replace(ran, latency=latency)

    def _rival(self, lane: _Lane, task: Task, best: _Best) -> Rival:
        """The best program, as this machine times it."""
        known = lane.rivals.get(task.key)
        if known is not None and known.artifact is best.artifact:
            return known
        (ran,) = lane.runner.run(task, [best.artifact], known)
        if ran.latency is None:
            raise LostError(f"the best program of the task does not run there: {ran.verdict.error}")
        lane.rivals[task.key] = rival = Rival(best.artifact, ran.latency)
        return rival

    def _give_up_if_hopeless(self, measurement: Measurement) -> None:
        self._streak.add(measurement)
        first = self._streak.first
        if first is not None and self._streak.length >= self.settings.identical_failures:
            raise TuningError(
                f"the last {self._streak.length} candidates all failed in one way ({first.outcome.value}); "
                f"the first was {first.candidate}: {first.error}"
            )


def _peak_of(target: Target) -> float:
    """What this machine does now at best; 0 where programs are not its own processor's."""
    return measure_flops(target, target.threads) if target.gpu is None and obstacle(target) is None else 0.0


def _measurement(program: Built, ran: Ran | None, machine: str) -> Measurement:
    if isinstance(program, Failure) or ran is None:
        assert isinstance(program, Failure)
        ran = Ran(program.verdict, None, 0.0)
    built = program if isinstance(program, Artifact) else None
    return Measurement(
        candidate=program.candidate,
        outcome=ran.verdict.outcome,
        key=built.key if built else "",
        latency=ran.latency,
        checked=ran.verdict.outcome is Outcome.OK,
        error=ran.verdict.error,
        seconds=Seconds(program.seconds, ran.seconds, ran.check_seconds),
        version=__version__,
        when=program.when,
        machine=machine,
        reports=built.reports if built else (),
    )
