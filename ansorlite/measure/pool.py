"""Supervised workers: jobs go in, answers or obituaries come out. Nothing that a worker does ends the tuning."""

from __future__ import annotations

import itertools
import selectors
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ansorlite.errors import TuningError
from ansorlite.measure.forking import ForkServer
from ansorlite.measure.process import WorkerProcess
from ansorlite.measure.protocol import Answer, Message, Order, Phase, answer_of, job_message
from ansorlite.task import Task
from ansorlite.te.serialize import dump

#: Seconds a worker may take to start and import what it needs.
START_SECONDS = 120.0

#: So many workers may die in a row before one of them gets as far as its first job.
START_ATTEMPTS = 3


@dataclass(frozen=True)
class Job:
    """One job and its limits.

    Attributes:
        task: the task that ``order.task`` is the key of.
        limits: seconds the worker may spend in each phase.
    """

    task: Task
    order: Order
    limits: Mapping[Phase, float]


@dataclass(frozen=True)
class Death:
    """A worker that did not finish its job.

    Attributes:
        phase: what it was doing.
        timed_out: whether it was killed for taking too long; else it died by itself or by another's hand.
        elapsed: seconds in that phase.
        cause: how it ended, for people: ``"SIGSEGV (segmentation fault)"``.
        words: the last it wrote to standard error.
    """

    phase: Phase
    timed_out: bool
    elapsed: float
    cause: str
    words: str


@dataclass
class _Busy:
    """A job in a worker's hands."""

    job: Job
    number: int
    phase: Phase
    since: float

    @property
    def deadline(self) -> float:
        limit = START_SECONDS if self.phase is Phase.STARTING else self.job.limits[self.phase]
        return self.since + limit


class Pool:
    """Workers that live from job to job, and are replaced when they die."""

    def __init__(
        self, server: ForkServer, size: int, start: Message, folder: Path, recycle: int, environment: Mapping[str, str]
    ) -> None:
        """Start the workers.

        Args:
            server: what starts them.
            size: how many.
            start: the message that tells a worker its target and settings.
            folder: where they write what they have to say to standard error.
            recycle: a worker is replaced after so many jobs.
            environment: variables of theirs, beside those of this process.
        """
        server.join()
        self._server = server
        self._start = start
        self._folder = folder
        self._recycle = recycle
        self._environment = environment
        self._numbers = itertools.count()
        self._failed_starts = 0
        self._size = size
        self._closed = False
        self._idle: deque[WorkerProcess] = deque()
        self._busy: dict[WorkerProcess, _Busy] = {}
        self._fill()

    def close(self) -> None:
        """Kill the workers, whatever they do. Closing twice does nothing."""
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle.clear()
        self._busy.clear()
        if not self._closed:
            self._closed = True
            self._server.leave()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Answer | Death]]:
        """Do the jobs, as many at once as there are workers, and yield each when it ends, in whatever order.

        Closing the iterator early kills the workers that are busy.

        Raises:
            TuningError: workers die before they are ready for their first job.
        """
        waiting = deque(jobs)
        self._fill()
        try:
            while waiting or self._busy:
                while waiting and self._idle:
                    self._assign(self._idle.popleft(), waiting.popleft())
                for worker in self._wait():
                    result = self._listen(worker)
                    if result is None:
                        continue
                    job = self._busy.pop(worker).job
                    self._retire(worker, dead=isinstance(result, Death))
                    if isinstance(result, Death) and result.phase is Phase.STARTING:
                        self._count_failed_start(result)
                        waiting.appendleft(job)
                    else:
                        yield job, result
        finally:
            for worker in self._busy:
                worker.kill()
            self._busy.clear()

    def _fill(self) -> None:
        while len(self._idle) < self._size:
            self._idle.append(self._new_worker())

    def _new_worker(self) -> WorkerProcess:
        worker = WorkerProcess(self._server, self._folder, self._environment)
        worker.send(self._start)
        return worker

    def _retire(self, worker: WorkerProcess, dead: bool) -> None:
        """Make an idle worker of one that is done with its job, or a new one in its place."""
        if dead or worker.jobs >= self._recycle:
            worker.kill()
            worker = self._new_worker()
        self._idle.append(worker)

    def _assign(self, worker: WorkerProcess, job: Job) -> None:
        if not worker.alive:  # killed from outside while it had nothing to do: not this job's fault
            worker.kill()
            worker = self._new_worker()
        number = next(self._numbers)
        phase = Phase.WORKING if worker.ready else Phase.STARTING
        self._busy[worker] = _Busy(job, number, phase, time.monotonic())
        worker.jobs += 1
        if job.task.key not in worker.tasks:
            worker.tasks.add(job.task.key)
            worker.send({"do": "task", "key": job.task.key, "dag": dump(job.task.dag)})
        worker.send(job_message(number, job.order))

    def _wait(self) -> list[WorkerProcess]:
        """The busy workers that said something, died, or ran out of time; waits until there is one."""
        with selectors.DefaultSelector() as selector:
            for worker in self._busy:
                selector.register(worker.output, selectors.EVENT_READ, worker)
            while True:
                now = time.monotonic()
                late = [worker for worker, busy in self._busy.items() if busy.deadline <= now]
                pause = 0.0 if late else max(0.0, min(busy.deadline for busy in self._busy.values()) - now)
                heard = [key.data for key, _ in selector.select(pause)]
                if heard or late:
                    return list(dict.fromkeys([*heard, *late]))

    def _listen(self, worker: WorkerProcess) -> Answer | Death | None:
        """What became of the worker's job, if anything did."""
        busy = self._busy[worker]
        for message in worker.receive():
            if message["event"] == "done" and message["job"] == busy.number:
                self._failed_starts = 0
                return answer_of(message)
            busy.phase, busy.since = Phase(message["event"]), time.monotonic()
            worker.ready = True
        elapsed = time.monotonic() - busy.since
        timed_out = not worker.ended and busy.deadline <= time.monotonic()
        if not worker.ended and not timed_out:
            return None
        worker.kill()
        return Death(busy.phase, timed_out, elapsed, worker.cause, worker.words)

    def _count_failed_start(self, death: Death) -> None:
        """A worker that dies before its first job is no fault of the job's, unless it happens again and again."""
        self._failed_starts += 1
        if self._failed_starts >= START_ATTEMPTS:
            raise TuningError(f"measurement workers die as they start ({death.cause}): {death.words or 'they said nothing'}")
