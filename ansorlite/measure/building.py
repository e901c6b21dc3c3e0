"""Compiling many programs at once, in worker processes."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.measure.local import LocalBuilder
from ansorlite.measure.roles import Built
from ansorlite.measure.settings import MeasureSettings
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task


def build_all(programs: Sequence[tuple[Task, Candidate | None]], processes: int) -> list[Built | None]:
    """Compile ``programs`` of one target, in so many processes; where there is no candidate, the default one is chosen there.

    Returns:
        what became of each; ``None`` where no default could be chosen.

    Raises:
        TuningError: the processes cannot start.
    """
    builder = LocalBuilder(programs[0][0].target, MeasureSettings(builders=processes))
    try:
        built = dict(builder.each(programs))
    finally:
        builder.close()
    return [built.get(number) for number in range(len(programs))]
