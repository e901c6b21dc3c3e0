"""Comparing two programs of a task, quickly: for ``compile``, which has records of other machines and little time.

Both are compiled already. One worker serves all tasks, and is started when the first two programs meet; a program that
crashes or hangs costs its turn. The output of the program that is known to be right is the reference here.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ansorlite.measure.forking import ForkServer
from ansorlite.measure.pool import Death, Job, Pool
from ansorlite.measure.protocol import Compare, Phase, Purpose, start_message
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import Verdict, death_verdict, run_verdict
from ansorlite.records.measurement import Outcome
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.temporary import TemporaryFolder


@dataclass(frozen=True)
class Turn:
    """What became of a program that was compared with another.

    Attributes:
        verdict: how it ended.
        latency: seconds of one call; ``None`` if it failed.
        rival: seconds of one call of the other program; ``None`` if the program failed.
        seconds: that all of it took.
    """

    verdict: Verdict
    latency: float | None
    rival: float | None
    seconds: float


class Referee:
    """Compares programs in a supervised worker. Use it as a context manager: leaving it ends the worker, if there is one."""

    def __init__(self, settings: MeasureSettings | None = None) -> None:
        self._settings = settings or MeasureSettings()
        self._pools: dict[Target, Pool] = {}
        self._folder: TemporaryFolder | None = None
        self._files = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, whatever it does. Closing twice does nothing."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def compare(self, task: Task, program: bytes, rival: bytes, seconds: float) -> Turn:
        """Check ``program`` against ``rival``, and time both in turns.

        Args:
            program, rival: what :func:`ansorlite.measure.native.build` gave.
            seconds: after which the program is given up.

        Raises:
            TuningError: no worker can be started.
        """
        pool = self._pool(task.target)
        assert self._folder is not None
        files = [self._folder.path / str(next(self._files)) for _ in range(2)]
        for file, content in zip(files, (program, rival), strict=True):
            file.write_bytes(content)
        order = Compare(task.key, str(files[0]), str(files[1]), seconds)
        try:
            ((_, result),) = pool.run([Job(task, order, {Phase.WORKING: seconds})])
        finally:
            for file in files:
                file.unlink(missing_ok=True)
        if isinstance(result, Death):
            return Turn(_verdict(result), None, None, result.elapsed)
        return Turn(run_verdict(result), result.latency, result.rival, result.seconds)

    def _pool(self, target: Target) -> Pool:
        if self._folder is None:
            self._folder = TemporaryFolder()
        if target not in self._pools:
            start = start_message(Purpose.RUN, target, self._settings)
            server = ForkServer([Purpose.RUN], self._settings.backend)
            self._pools[target] = Pool(server, 1, start, self._folder.path, self._settings.recycle, {})
        return self._pools[target]


def _verdict(death: Death) -> Verdict:
    if death.timed_out:
        return Verdict(Outcome.RUN_TIMEOUT, f"not compared with another program within {death.elapsed:.1f} s")
    return death_verdict(death, "while the program was compared with another")
