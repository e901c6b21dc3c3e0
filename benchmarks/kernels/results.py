"""The rows of what the benchmark of kernels finds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from benchmarks.common.results import Readers, ResultsFile
from benchmarks.common.spread import Spread

#: Names of our own ways to run a case.
CALLED: Final = "ours"
BARE: Final = "ours bare"
UNTUNED: Final = "untuned"


class Point(NamedTuple):
    """A better program became known: after so many seconds, with which trial, and its latency in seconds."""

    at: float
    trial: int
    latency: float


@dataclass(frozen=True)
class Tuning:
    """One run of tuning.

    Attributes:
        trials: measurements made in all; ``restored`` of them by earlier runs.
        seconds: wall clock of this run.
        phases: where they went.
        curve: whenever a better program was known.
        asked: trials that there were to be in all; fewer were made where time was up. 0 in rows of old.
    """

    suite: str
    case: str
    threads: int
    trials: int
    seed: int
    restored: int
    errors: int
    seconds: float
    phases: Mapping[str, float]
    curve: tuple[Point, ...]
    when: float
    asked: int = 0

    def slowdown(self, trials: int) -> float | None:
        """How many times the last program's latency that of the best of so many trials was; ``None`` if none had run."""
        known = min((point.latency for point in self.curve if point.trial <= trials), default=None)
        return None if known is None else known / min(point.latency for point in self.curve)


@dataclass(frozen=True)
class Timing:
    """One case timed beside the others, in turns.

    Attributes:
        trials: asked for when it was tuned; 0: not tuned.
        flops, nbytes: of the computation as written: operations, and bytes of inputs and output.
        dtype: of the first input.
        seconds: median of a call, by contender; :data:`CALLED`, :data:`BARE` and :data:`UNTUNED` are ours.
        called, bare: how many times as fast as a contender ours is, called from Python and bare; taken round by round.
        of_peak: operations a second of the bare kernel, as a share of the float32 multiply-adds that all threads did in the
            same rounds; ``None`` in rows of before 2026-11-23.
        compile_seconds: of ``al.compile`` without any record and with nothing cached, which gives :data:`UNTUNED`.
        recorded: whether a record gave the program; else it is the default, as no record was of this version.
        wrong: what is wrong with a contender's output, by contender.
        busy: the share of the machine that other work took meanwhile.
    """

    suite: str
    case: str
    threads: int
    trials: int
    seed: int
    flops: int
    nbytes: int
    dtype: str
    seconds: Mapping[str, float]
    called: Mapping[str, Spread]
    bare: Mapping[str, Spread]
    of_peak: Spread | None
    compile_seconds: float | None
    recorded: bool
    wrong: Mapping[str, str]
    busy: float
    when: float


@dataclass(frozen=True)
class Variance:
    """One case tuned with several seeds, the programs timed in turns.

    Attributes:
        seconds: median of the bare kernel, by seed.
        worst: how fast the worst seed's program is, as a share of the best one's.
        floor: the same of the first seed's program, bound and timed as often as there are seeds.
    """

    suite: str
    case: str
    threads: int
    trials: int
    seconds: tuple[float, ...]
    worst: float
    floor: float
    when: float


@dataclass(frozen=True)
class Run:
    """What rows of one table have in common.

    Attributes:
        trials: 0: not tuned.
    """

    threads: int
    trials: int
    seed: int


#: By suite and name of the case.
Key: TypeAlias = tuple[str, str]


class Results(ResultsFile[Tuning | Timing | Variance]):
    """What the benchmark of kernels found."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, _READERS)

    def timings(self, suites: Sequence[str], run: Run) -> dict[Key, Timing]:
        """The latest of each case."""
        rows = [row for row in self.rows if isinstance(row, Timing) and row.suite in suites]
        return {(row.suite, row.case): row for row in rows if (row.threads, row.trials, row.seed) == astuple(run)}

    def variances(self, suites: Sequence[str], threads: int, trials: int | None = None) -> dict[Key, Variance]:
        """The latest of each case, with so many trials if that is said."""
        rows = [row for row in self.rows if isinstance(row, Variance) and row.suite in suites and row.threads == threads]
        return {(row.suite, row.case): row for row in rows if trials is None or row.trials == trials}

    def tunings(self, suites: Sequence[str], run: Run) -> dict[Key, Tuning]:
        """How each case came to at most the trials of ``run``: its runs joined. A case with a gap in them is left out."""
        joined: dict[Key, Tuning] = {}
        rows = [row for row in self.rows if isinstance(row, Tuning) and row.suite in suites]
        for row in rows:
            if (row.threads, row.seed) != (run.threads, run.seed) or max(row.trials, row.asked) > run.trials:
                continue
            key = (row.suite, row.case)
            if row.restored == 0:
                joined[key] = row
            elif key in joined and joined[key].trials == row.restored:
                joined[key] = _joined(joined[key], row)
            else:
                joined.pop(key, None)
        return joined


def _joined(first: Tuning, second: Tuning) -> Tuning:
    best = min((point.latency for point in first.curve), default=math.inf)
    later = tuple(point._replace(at=first.seconds + point.at) for point in second.curve if point.latency < best)
    return replace(
        second,
        restored=first.restored,
        errors=second.errors,
        seconds=first.seconds + second.seconds,
        phases={phase: first.phases[phase] + seconds for phase, seconds in second.phases.items()},
        curve=first.curve + later,
    )


def _timing(fields: dict[str, Any]) -> Timing:
    ratios = {name: {peer: Spread(**spread) for peer, spread in fields[name].items()} for name in ("called", "bare")}
    of_peak = fields.get("of_peak")
    return Timing(**{**fields, **ratios, "of_peak": Spread(**of_peak) if of_peak else None})


def _tuning(fields: dict[str, Any]) -> Tuning:
    return Tuning(**{**fields, "curve": tuple(Point(*point) for point in fields["curve"])})


def _variance(fields: dict[str, Any]) -> Variance:
    return Variance(**{**fields, "seconds": tuple(fields["seconds"])})


_READERS: Final[Readers[Tuning | Timing | Variance]] = {"Timing": _timing, "Tuning": _tuning, "Variance": _variance}
