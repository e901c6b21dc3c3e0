"""The rows of what the benchmark of models finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ansorlite.graph.precision import PRECISIONS
from benchmarks.common.results import Readers, ResultsFile
from benchmarks.common.spread import Spread

#: Names of our own ways to run a model.
OURS: Final = "ours"
UNTUNED: Final = "untuned"
FEW: Final = "few trials"
#: The share of the final speed after which tuning is nearly done.
NEARLY: Final = 0.9


@dataclass(frozen=True)
class Run:
    """What rows of one table have in common.

    Attributes:
        trials: for each task; 0: not tuned.
        time_limit: seconds of tuning a model, at most.
        precision: what products of float32 multiply, in all systems that can be told.
    """

    threads: int
    trials: int
    seed: int
    time_limit: float | None
    precision: str = PRECISIONS[0]


@dataclass(frozen=True)
class Tuning:
    """One run of tuning.

    Attributes:
        trials: measurements made in all; ``restored`` of them by earlier runs.
        seconds: wall clock of this run.
        nearly: the seconds after which the programs known had :data:`NEARLY` of the final speed, by the latencies
            measured; ``None`` for a run that goes on with an earlier one.
    """

    model: str
    run: Run
    trials: int
    restored: int
    seconds: float
    nearly: float | None
    when: float


@dataclass(frozen=True)
class Timing:
    """One model timed beside the others, in turns.

    Attributes:
        tasks: how many different ones it has; ``fallbacks``: operators that run in Python.
        seconds: median of a call, by contender; :data:`OURS`, :data:`UNTUNED` and :data:`FEW` are ours.
        ratios: how many times as fast as a contender ours is, taken round by round.
        compile_seconds: from the ONNX model to the untuned program, with nothing cached.
        differences: the largest relative difference of an output from onnxruntime's, by contender.
        busy: the share of the machine that other work took meanwhile.
        few: trials for each task of the programs of :data:`FEW`.
    """

    model: str
    run: Run
    tasks: int
    fallbacks: int
    seconds: Mapping[str, float]
    ratios: Mapping[str, Spread]
    compile_seconds: float
    differences: Mapping[str, float]
    busy: float
    when: float
    few: int = 0


class Results(ResultsFile[Tuning | Timing]):
    """What the benchmark of models found."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, _READERS)

    def timings(self, run: Run) -> dict[str, Timing]:
        """The latest of each model."""
        return {row.model: row for row in self.rows if isinstance(row, Timing) and row.run == run}

    def nearly(self, run: Run) -> dict[str, float]:
        """By model, of its latest run as ``run`` says that began anew: :attr:`Tuning.nearly`."""
        rows = (row for row in self.rows if isinstance(row, Tuning) and row.run == run)
        return {row.model: row.nearly for row in rows if row.nearly is not None}

    def tuning_seconds(self, run: Run) -> dict[str, float]:
        """By model, over all its runs on so many threads that led to at most these trials."""
        seconds: dict[str, float] = {}
        for row in self.rows:
            if not isinstance(row, Tuning) or _whatever_it_took(row.run) != _whatever_it_took(run):
                continue
            if row.run.trials <= run.trials:
                before = seconds.get(row.model, 0.0) if row.restored else 0.0
                seconds[row.model] = before + row.seconds
        return seconds


def _whatever_it_took(run: Run) -> Run:
    """What is the same of runs that go on with one another."""
    return replace(run, trials=0, time_limit=None)


def _timing(fields: dict[str, Any]) -> Timing:
    ratios = {peer: Spread(**spread) for peer, spread in fields["ratios"].items()}
    return Timing(**{**fields, "run": Run(**fields["run"]), "ratios": ratios})


def _tuning(fields: dict[str, Any]) -> Tuning:
    return Tuning(**{**fields, "run": Run(**fields["run"])})


_READERS: Final[Readers[Tuning | Timing]] = {"Timing": _timing, "Tuning": _tuning}
