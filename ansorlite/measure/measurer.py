"""From candidates to measurements.

The road of a batch: the builders compile all of it at once; then, the builders idle (a compiler on the next core
would be in the numbers), one runner takes the programs one by one, checks the output of each and times it, in turns
with the best program so far. How much faster or slower it is counts, so that all latencies of a task are in one unit,
whatever else the machine does meanwhile. The best of an earlier run is checked and timed again first: what is stopped for
being slow is compared with the machine as it is now.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ansorlite import visible
from ansorlite.errors import TuningError
from ansorlite.loops.arguments import argument
from ansorlite.measure.pool import Death, Job, Pool
from ansorlite.measure.protocol import Answer, Build, Phase, Prepare, Run
from ansorlite.measure.settings import BUILDER_ENVIRONMENT, RUNNER_ENVIRONMENT, MeasureSettings
from ansorlite.measure.verdict import Streak, Verdict, build_verdict, run_verdict
from ansorlite.records.measurement import Measurement, Outcome, Seconds
from ansorlite.runtime.memory import check_fits
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.target import Target, check_runs, resolve
from ansorlite.task import Task
from ansorlite.version import __version__
from ansorlite.writing import make_temporary_folder

_log = visible.logger(__name__)

#: Candidates per builder in one batch: enough that no builder waits long for the slowest, few enough that results flow.
_BATCH_PER_BUILDER: Final = 8


@dataclass(frozen=True)
class _Program:
    """A candidate after the builders had it.

    Attributes:
        file: the program, if ``verdict`` is ``OK``.
        seconds: of compiling.
        when: its start, Unix time.
    """

    candidate: Candidate
    file: Path
    verdict: Verdict
    seconds: float
    when: float


@dataclass
class _Best:
    """The program to beat.

    Attributes:
        latency: seconds as its measurement says it, the unit of all latencies of the task.
        now: seconds as it was timed by this measurer: what others are stopped early against.
    """

    candidate: Candidate
    latency: float
    now: float
    file: Path


class Measurer:
    """Measures candidates in supervised worker processes. Use it as a context manager: leaving it ends the workers.

    A candidate that crashes, hangs, eats memory or computes the wrong thing costs one measurement, which says so.
    """

    def __init__(self, target: str | Target = "llvm", settings: MeasureSettings | None = None) -> None:
        """Start the workers.

        Args:
            target: the machine to measure on: this one.
            settings: limits, repeats, number of workers.

        Raises:
            TargetError: an unknown target, or one whose code cannot run here.
        """
        self.target = resolve(target)
        check_runs(self.target)
        self.settings = settings or MeasureSettings()
        self._folder = make_temporary_folder()
        self._files = itertools.count()
        self._references: dict[str, Path] = {}
        self._bests: dict[str, _Best] = {}
        self._streak = Streak()
        start = {"do": "start", "target": asdict(self.target), "settings": asdict(self.settings)}
        recycle = self.settings.recycle
        self._builders = Pool(self.settings.builders, start, self._folder, recycle, BUILDER_ENVIRONMENT)
        self._runner = Pool(1, start, self._folder, recycle, RUNNER_ENVIRONMENT)

    def close(self) -> None:
        """Kill the workers, whatever they do, and remove their files. Closing twice does nothing."""
        self._builders.close()
        self._runner.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def measure(
        self,
        task: Task,
        candidates: Sequence[Candidate],
        keys: Sequence[str] | None = None,
        best: Measurement | None = None,
    ) -> Iterator[Measurement]:
        """Measure candidates of one task; yields one measurement for each, in order, as they are done.

        Args:
            keys: the candidates' canonical keys, for their measurements.
            best: the best measurement known, from a database say. What is measured here is remembered without it.

        Raises:
            MemoryLimitError: this machine has less memory than the inputs and outputs need.
            TuningError: the workers cannot start, the task itself cannot be evaluated, or the same failure happened
                :attr:`MeasureSettings.identical_failures` times in a row. Says what happened first.
        """
        self._prepare(task)
        self._know(task, best)
        size = self.settings.builders * _BATCH_PER_BUILDER
        keyed = list(zip(candidates, keys if keys is not None else [""] * len(candidates), strict=True))
        for start in range(0, len(keyed), size):
            batch = keyed[start : start + size]
            programs = self._build(task, [candidate for candidate, _ in batch])
            for program, (_, key) in zip(programs, batch, strict=True):
                measurement = replace(self._measure(task, program), key=key)
                yield measurement
                self._give_up_if_hopeless(measurement)

    # One step each ------------------------------------------------------------------------------------------------

    def _prepare(self, task: Task) -> None:
        """Have the runner make the task's inputs and reference outputs, once."""
        if task.key in self._references:
            return
        check_fits({tensor.name: argument(tensor).nbytes for tensor in (*task.dag.inputs, *task.dag.outputs)})
        reference = self._new_file()
        settings = self.settings
        order = Prepare(task.key, str(reference))
        ((_, result),) = self._runner.run([Job(task, order, {Phase.WORKING: settings.prepare_seconds})])
        verdict = run_verdict(result)
        if verdict.outcome is not Outcome.OK:
            raise TuningError(f"the reference output of task {task.key} cannot be computed: {verdict.error}")
        self._references[task.key] = reference

    def _know(self, task: Task, best: Measurement | None) -> None:
        """Have the program of ``best`` at hand, if it is news: checked, and timed as fast as this machine is now."""
        known = self._bests.get(task.key)
        if best is None or best.latency is None or (known is not None and known.latency <= best.latency):
            return
        (program,) = self._build(task, [best.candidate])
        verdict = program.verdict
        if verdict.outcome is Outcome.OK:
            result = self._run(task, program, None)
            verdict = run_verdict(result)
            if verdict.outcome is Outcome.OK and isinstance(result, Answer) and result.latency is not None:
                self._bests[task.key] = _Best(best.candidate, best.latency, result.latency, program.file)
                return
        what = "compile" if verdict is program.verdict else "run"
        _log.warning("the best record of task %s does not %s and is not used: %s", task.key, what, verdict.error)

    def _build(self, task: Task, candidates: Sequence[Candidate]) -> list[_Program]:
        """Compile candidates, all builders at once."""
        when = time.time()
        orders = [Build(task.key, candidate, str(self._new_file())) for candidate in candidates]
        jobs = [Job(task, order, {Phase.WORKING: self.settings.build_seconds}) for order in orders]
        results = {id(job.order): result for job, result in self._builders.run(jobs)}
        return [
            _Program(candidate, Path(order.artifact), build_verdict(result), _spent(result), when)
            for candidate, order, result in ((c, order, results[id(order)]) for c, order in zip(candidates, orders, strict=True))
        ]

    def _measure(self, task: Task, program: _Program) -> Measurement:
        """Check and time one program."""
        if program.verdict.outcome is not Outcome.OK:
            return _measurement(program, program.verdict, None, 0.0, 0.0)
        best = self._bests.get(task.key)
        result = self._run(task, program, best)
        verdict = run_verdict(result)
        now, check = (result.latency, result.check_seconds) if isinstance(result, Answer) else (None, 0.0)
        latency = now if now is None or best is None else now * (best.latency / best.now)
        if verdict.outcome is Outcome.OK and now is not None and latency is not None and (best is None or latency < best.latency):
            self._bests[task.key] = _Best(program.candidate, latency, now, program.file)
            if best is not None:
                _remove(best.file)
        else:
            _remove(program.file)
        return _measurement(program, verdict, latency, _spent(result), check)

    def _run(self, task: Task, program: _Program, best: _Best | None) -> Answer | Death:
        """Check one program and time it, beside the best."""
        beat = None if program.candidate == NAIVE else best
        order = Run(
            task=task.key,
            artifact=str(program.file),
            reference=str(self._references[task.key]),
            best=beat.now if beat else None,
            rival=str(beat.file) if beat and beat.candidate != program.candidate else None,
        )
        ((_, result),) = self._runner.run([Job(task, order, self._run_limits(program.candidate, best))])
        return result

    def _run_limits(self, candidate: Candidate, best: _Best | None) -> dict[Phase, float]:
        settings = self.settings
        naive = candidate == NAIVE
        running = settings.naive_seconds if naive else settings.run_seconds
        checking = settings.check_seconds
        if best is not None:
            patience = settings.naive_patience if naive else settings.patience
            running = min(running, max(patience, settings.hopeless_factor * best.now))
            checking += 2 * best.now
        return {Phase.WORKING: settings.prepare_seconds, Phase.RUNNING: running, Phase.CHECKING: checking}

    def _give_up_if_hopeless(self, measurement: Measurement) -> None:
        self._streak.add(measurement)
        first = self._streak.first
        if first is not None and self._streak.length >= self.settings.identical_failures:
            raise TuningError(
                f"the last {self._streak.length} candidates all failed in one way ({first.outcome.value}); "
                f"the first was {first.candidate}: {first.error}"
            )

    def _new_file(self) -> Path:
        return self._folder / str(next(self._files))


def _remove(file: Path) -> None:
    """Remove a program that is not needed any more.

    Raises:
        TuningError: it is gone. Nobody here removed it, and what else was in its folder is likely to be gone, too: candidates
            would seem to fail.
    """
    try:
        file.unlink()
    except FileNotFoundError:
        folder = file.parent.parent
        raise TuningError(
            f"{file} was removed while programs were measured; something cleans {folder}, so set TMPDIR to another folder"
        ) from None


def _spent(result: Answer | Death) -> float:
    return result.seconds if isinstance(result, Answer) else result.elapsed


def _measurement(program: _Program, verdict: Verdict, latency: float | None, run: float, check: float) -> Measurement:
    return Measurement(
        candidate=program.candidate,
        outcome=verdict.outcome,
        latency=latency,
        checked=verdict.outcome is Outcome.OK,
        error=verdict.error,
        seconds=Seconds(program.seconds, run, check),
        version=__version__,
        when=program.when,
    )
