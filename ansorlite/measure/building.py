"""Compiling many programs at once, in worker processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ansorlite.measure.pool import Job, Pool
from ansorlite.measure.protocol import Answer, Build, Phase, Purpose, start_message
from ansorlite.measure.settings import BUILDER_ENVIRONMENT, MeasureSettings
from ansorlite.measure.verdict import Verdict, build_verdict
from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task
from ansorlite.writing import temporary_folder

#: Seconds for choosing a default program, on however busy a machine.
_CHOOSING: Final = 60.0


@dataclass(frozen=True)
class Built:
    """A program: what the worker compiled of a candidate."""

    candidate: Candidate
    artifact: bytes


def build_all(programs: Sequence[tuple[Task, Candidate | None]], processes: int) -> list[Built | Verdict | None]:
    """Compile ``programs`` of one target, in so many processes; where there is no candidate, the default one is chosen there.

    Returns:
        the programs; what is wrong with those that do not compile; ``None`` for those that took too long beside the others.

    Raises:
        TuningError: the processes cannot start.
    """
    settings = MeasureSettings()
    start = start_message(Purpose.BUILD, programs[0][0].target, settings)
    results: list[Built | Verdict | None] = [None] * len(programs)
    with temporary_folder() as folder:
        numbers: dict[str, int] = {str(folder / f"{n}"): n for n in range(len(programs))}
        jobs = [
            Job(task, Build(task.key, candidate, file), {Phase.WORKING: settings.build_seconds + _CHOOSING * (candidate is None)})
            for (task, candidate), file in zip(programs, numbers, strict=True)
        ]
        pool = Pool(processes, start, folder, len(programs) + 1, BUILDER_ENVIRONMENT)
        try:
            for job, result in pool.run(jobs):
                assert isinstance(job.order, Build)
                file, verdict = job.order.artifact, build_verdict(result)
                if isinstance(result, Answer) and result.candidate is not None:
                    results[numbers[file]] = Built(result.candidate, Path(file).read_bytes())
                elif verdict.outcome is not Outcome.COMPILE_TIMEOUT:
                    results[numbers[file]] = verdict
        finally:
            pool.close()
    return results
