"""What long runs found, as rows of a file that every run adds to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.common.results import Readers, ResultsFile


@dataclass(frozen=True)
class Findings:
    """What one attempt of a scenario found.

    Attributes:
        counts: how many checks of which kind were made.
        failures: what was wrong, each with what it takes to see it again.
        figures: what was measured beside.
    """

    counts: Mapping[str, int]
    failures: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


#: Makes the attempt of this number, in this empty folder. The number decides everything random.
Attempt: TypeAlias = Callable[[int, Path], Findings]


@dataclass(frozen=True)
class Run:
    """One attempt that was made.

    Attributes:
        scenario: its name.
        number: of the attempt; none is made twice.
        seconds: of the wall clock.
        commit: of the code that ran; with ``+`` where files had been changed since.
        cpu, target: the machine.
        when: it ended, as ``time.time()`` counts.
    """

    scenario: str
    number: int
    counts: Mapping[str, int]
    failures: tuple[str, ...]
    figures: Mapping[str, float]
    seconds: float
    commit: str
    cpu: str
    target: str
    when: float


def total(runs: Iterable[Run]) -> Counter[str]:
    """The checks of all of them."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.counts)
    return counts


def results_file(path: Path | None) -> ResultsFile[Run]:
    """The runs at ``path``.

    Raises:
        ValueError: it holds something else.
    """
    return ResultsFile(path, _READERS)


def _run(fields: dict[str, Any]) -> Run:
    return Run(**{**fields, "failures": tuple(fields["failures"])})


_READERS: Final[Readers[Run]] = {Run.__name__: _run}
