"""Building and running in supervised processes of this machine."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ansorlite.errors import TuningError
from ansorlite.loops.arguments import argument
from ansorlite.measure.bench import Reference, prepared
from ansorlite.measure.forking import ForkServer
from ansorlite.measure.limits import run_limits
from ansorlite.measure.pool import Death, Job, Pool
from ansorlite.measure.protocol import Answer, Build, Phase, Prepare, Purpose, Run, start_message
from ansorlite.measure.roles import Artifact, Built, Failure, Ran, Rival, Workers
from ansorlite.measure.settings import BUILDER_ENVIRONMENT, MeasureSettings
from ansorlite.measure.verdict import build_verdict, run_verdict
from ansorlite.records.measurement import Outcome
from ansorlite.runtime.memory import check_fits
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, check_runs
from ansorlite.task import Task
from ansorlite.temporary import TemporaryFolder

#: Seconds for choosing a default program, on however busy a machine.
_CHOOSING: Final = 60.0


def local_workers(target: Target, settings: MeasureSettings) -> Workers:
    """A builder and a runner on this machine.

    Raises:
        TargetError: code for ``target`` cannot run here.
    """
    check_runs(target)
    server = ForkServer(list(Purpose), settings.backend)
    builder = LocalBuilder(target, settings, server)
    return Workers(builder, [LocalRunner(target, settings, server=server)], builder)


class _Processes:
    """A pool of workers, and a folder for what they read and write."""

    def __init__(
        self,
        purpose: Purpose,
        target: Target,
        settings: MeasureSettings,
        size: int,
        environment: Mapping[str, str],
        server: ForkServer | None,
    ) -> None:
        self.settings = settings
        server = server or ForkServer([purpose], settings.backend)
        self._folder = TemporaryFolder()
        self._files = itertools.count()
        start = start_message(purpose, target, settings)
        self.pool = Pool(server, size, start, self._folder.path, settings.recycle, environment)

    def close(self) -> None:
        self.pool.close()
        self._folder.close()

    def new_file(self) -> Path:
        return self._folder.path / str(next(self._files))

    def removed(self, file: Path) -> TuningError:
        """``file`` is gone. Nobody here removed it, and what else was in its folder is likely to be gone, too: candidates would
        seem to fail."""
        return TuningError(
            f"{file} was removed while programs were measured; something cleans {self._folder.path.parent}, "
            "so set TMPDIR to another folder"
        )

    def prepare(self, task: Task) -> Path:
        """The file of the task's reference outputs.

        Raises:
            MemoryLimitError: inputs and outputs need more memory than there is.
            TuningError: the outputs cannot be computed, or not in time.
        """
        check_fits({tensor.name: argument(tensor).nbytes for tensor in (*task.dag.inputs, *task.dag.outputs)})
        reference = self.new_file()
        job = Job(task, Prepare(task.key, str(reference)), {Phase.WORKING: self.settings.prepare_seconds})
        ((_, result),) = self.pool.run([job])
        verdict = run_verdict(result)
        if verdict.outcome is not Outcome.OK:
            raise TuningError(f"the reference output of task {task.key} cannot be computed: {verdict.error}")
        return reference


class LocalBuilder:
    """A :class:`~ansorlite.measure.roles.Builder`: a process on each core. All candidates are compiled before the first is given:
    a compiler on the next core would be in the numbers."""

    def __init__(self, target: Target, settings: MeasureSettings, server: ForkServer | None = None) -> None:
        """
        Args:
            server: what starts the processes; by default one of its own.
        """
        self._processes = _Processes(Purpose.BUILD, target, settings, settings.builders, BUILDER_ENVIRONMENT, server)
        self._lock = threading.Lock()  # several boards may ask for what to expect, each in a thread of its own
        self._references: dict[str, Path] = {}

    @property
    def size(self) -> int:
        return self._processes.settings.builders

    def close(self) -> None:
        self._processes.close()

    def build(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        built = dict(self.each([(task, candidate) for candidate in candidates]))
        for number in range(len(candidates)):
            yield built[number]

    def each(self, programs: Sequence[tuple[Task, Candidate | None]]) -> Generator[tuple[int, Built], None, None]:
        """See :class:`~ansorlite.measure.roles.Ahead`."""
        when, settings = time.time(), self._processes.settings
        files = [self._processes.new_file() for _ in programs]
        numbers = {str(file): number for number, file in enumerate(files)}
        jobs = [
            Job(task, Build(task.key, candidate, file), {Phase.WORKING: settings.build_seconds + _CHOOSING * (candidate is None)})
            for (task, candidate), file in zip(programs, numbers, strict=True)
        ]
        try:
            with self._lock:
                for job, result in self._processes.pool.run(jobs):
                    assert isinstance(job.order, Build)
                    number = numbers[job.order.artifact]
                    candidate = programs[number][1] or (result.candidate if isinstance(result, Answer) else None)
                    if candidate is not None:
                        yield number, self._built(candidate, files[number], result, when)
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    def reference(self, task: Task) -> Reference:
        """What programs of the task are to compute, for machines that do not know. It has a limit, in time and in memory.

        Raises:
            MemoryLimitError, TuningError: as for a runner's ``prepare``.
        """
        with self._lock:
            if task.key not in self._references:
                self._references[task.key] = self._processes.prepare(task)
        return prepared(task.dag, self._processes.settings.seed, self._references[task.key])

    def _built(self, candidate: Candidate, file: Path, result: Answer | Death, when: float) -> Built:
        verdict, seconds = build_verdict(result), _spent(result)
        if verdict.outcome is not Outcome.OK:
            return Failure(candidate, verdict, seconds, when)
        try:
            code = file.read_bytes()
        except FileNotFoundError:
            raise self._processes.removed(file) from None
        assert isinstance(result, Answer), "what died is a failure"
        return Artifact(candidate, code, seconds, when, result.key, result.reports)


class LocalRunner:
    """A :class:`~ansorlite.measure.roles.Runner`: one process, in which one program at a time runs.

    Attributes:
        machine: what it is called in records.
    """

    def __init__(self, target: Target, settings: MeasureSettings, machine: str = "", server: ForkServer | None = None) -> None:
        """
        Args:
            server: what starts the process; by default one of its own.
        """
        self.machine = machine
        self._processes = _Processes(Purpose.RUN, target, settings, 1, {}, server)
        self._references: dict[str, Path] = {}
        # The files of a task's programs that may be the next one's rival: those stay loaded.
        self._files: dict[str, dict[Candidate, Path]] = {}

    def revive(self) -> bool:
        """It is never lost: dead processes are replaced."""
        return True

    def close(self) -> None:
        self._processes.close()

    def prepare(self, task: Task) -> None:
        if task.key not in self._references:
            self._references[task.key] = self._processes.prepare(task)

    def run(self, task: Task, artifacts: Sequence[Artifact], rival: Rival | None) -> list[Ran]:
        self.prepare(task)
        return [self._run(task, artifact, rival) for artifact in artifacts]

    def _run(self, task: Task, artifact: Artifact, rival: Rival | None) -> Ran:
        self._forget(task, None if rival is None else rival.artifact.candidate)
        if not self._references[task.key].exists():
            raise self._processes.removed(self._references[task.key])
        limits = run_limits(self._processes.settings, artifact, rival)
        beat = limits.rival
        order = Run(
            task=task.key,
            artifact=str(self._file(task, artifact)),
            reference=str(self._references[task.key]),
            best=beat.now if beat else None,
            rival=str(self._file(task, beat.artifact)) if beat and beat.artifact.candidate != artifact.candidate else None,
            once=limits.once,
        )
        ((_, result),) = self._processes.pool.run([Job(task, order, limits.seconds)])
        if isinstance(result, Death):
            return Ran(run_verdict(result), None, result.elapsed)
        return Ran(run_verdict(result), result.latency, result.seconds, result.check_seconds)

    def _file(self, task: Task, artifact: Artifact) -> Path:
        """Where the worker finds the program. A file is never written twice: the worker knows programs by their files."""
        files = self._files.setdefault(task.key, {})
        if artifact.candidate not in files:
            file = files[artifact.candidate] = self._processes.new_file()
            file.write_bytes(artifact.code)
        return files[artifact.candidate]

    def _forget(self, task: Task, but: Candidate | None) -> None:
        files = self._files.get(task.key, {})
        for candidate in [candidate for candidate in files if candidate != but]:
            files.pop(candidate).unlink(missing_ok=True)


def _spent(result: Answer | Death) -> float:
    return result.seconds if isinstance(result, Answer) else result.elapsed
