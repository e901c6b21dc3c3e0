"""Compiling many programs at once, in worker processes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ansorlite.measure.pool import Job, Pool
from ansorlite.measure.protocol import Answer, Build, Phase, Status
from ansorlite.measure.settings import BUILDER_ENVIRONMENT, MeasureSettings
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


def build_all(programs: Sequence[tuple[Task, Candidate]], processes: int) -> list[bytes | None]:
    """Compile ``programs`` of one target, in so many processes.

    Returns:
        for each what :func:`ansorlite.measure.native.build` gives; ``None`` where that failed.

    Raises:
        TuningError: the processes cannot start.
    """
    settings = MeasureSettings()
    start = {"do": "start", "target": asdict(programs[0][0].target), "settings": asdict(settings)}
    results: list[bytes | None] = [None] * len(programs)
    with tempfile.TemporaryDirectory(prefix="ansorlite-") as name:
        folder = Path(name)
        numbers: dict[str, int] = {str(folder / f"{n}"): n for n in range(len(programs))}
        jobs = [
            Job(task, Build(task.key, candidate, file), {Phase.WORKING: settings.build_seconds})
            for (task, candidate), file in zip(programs, numbers, strict=True)
        ]
        pool = Pool(processes, start, folder, len(programs) + 1, BUILDER_ENVIRONMENT)
        try:
            for job, result in pool.run(jobs):
                if isinstance(job.order, Build) and isinstance(result, Answer) and result.status is Status.OK:
                    results[numbers[job.order.artifact]] = Path(job.order.artifact).read_bytes()
        finally:
            pool.close()
    return results
