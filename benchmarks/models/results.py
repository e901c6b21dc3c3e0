"""What was found, as rows in a file of JSON lines that every run adds to, so that a run that is stopped goes on from there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final, TypeAlias

from ansorlite.runtime.peaks import Peaks
from benchmarks.common.machine import Machine
from benchmarks.common.spread import Spread

#: Names of our own ways to run a model.
OURS: Final = "ours"
UNTUNED: Final = "untuned"


@dataclass(frozen=True)
class Run:
    """What rows of one table have in common.

    Attributes:
        trials: for each task; 0: not tuned.
        time_limit: seconds of tuning a model, at most.
    """

    threads: int
    trials: int
    seed: int
    time_limit: float | None


@dataclass(frozen=True)
class Tuning:
    """One run of tuning.

    Attributes:
        trials: measurements made in all; ``restored`` of them by earlier runs.
        seconds: wall clock of this run.
    """

    model: str
    run: Run
    trials: int
    restored: int
    seconds: float
    when: float


@dataclass(frozen=True)
class Timing:
    """One model timed beside the others, in turns.

    Attributes:
        tasks: how many different ones it has; ``fallbacks``: operators that run in Python.
        seconds: median of a call, by contender; :data:`OURS` and :data:`UNTUNED` are ours.
        ratios: how many times as fast as a contender ours is, taken round by round.
        compile_seconds: from the ONNX model to the untuned program, with nothing cached.
        differences: the largest relative difference of an output from onnxruntime's, by contender.
        busy: the share of the machine that other work took meanwhile.
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


Row: TypeAlias = Machine | Tuning | Timing


class Results:
    """The rows of a file; of a file that is not there, none yet.

    Args:
        path: ``None`` keeps them in memory only.

    Raises:
        ValueError: the file's rows are not of this version.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            self.rows: list[Row] = list(_read(path)) if path is not None and path.exists() else []
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} does not hold rows of this version of the benchmark; move it away") from error

    def add(self, row: Row) -> None:
        """Keep a row; it is in the file when this returns."""
        self.rows.append(row)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"kind": type(row).__name__, **asdict(row)}) + "\n")

    def timings(self, run: Run) -> dict[str, Timing]:
        """The latest of each model."""
        return {row.model: row for row in self.rows if isinstance(row, Timing) and row.run == run}

    def tuning_seconds(self, run: Run) -> dict[str, float]:
        """By model, over all its runs on so many threads that led to at most these trials."""
        seconds: dict[str, float] = {}
        for row in self.rows:
            if not isinstance(row, Tuning) or (row.run.threads, row.run.seed) != (run.threads, run.seed):
                continue
            if row.run.trials <= run.trials:
                before = seconds.get(row.model, 0.0) if row.restored else 0.0
                seconds[row.model] = before + row.seconds
        return seconds

    def machine(self, threads: int) -> Machine:
        """The latest run's on so many threads, which has added its row; with the best peaks of all runs there."""
        rows = [row for row in self.rows if isinstance(row, Machine) and row.threads == threads]
        alike = [row for row in rows if (row.cpu, row.target) == (rows[-1].cpu, rows[-1].target)]
        one, all_ = (reduce(Peaks.best, peaks) for peaks in ([row.one for row in alike], [row.all for row in alike]))
        return replace(rows[-1], one=one, all=all_)


def _read(path: Path) -> Iterator[Row]:
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        match fields.pop("kind"):
            case "Machine":
                yield Machine.of(fields)
            case "Tuning":
                yield Tuning(**{**fields, "run": Run(**fields["run"])})
            case "Timing":
                ratios = {peer: Spread(**spread) for peer, spread in fields["ratios"].items()}
                yield Timing(**{**fields, "run": Run(**fields["run"]), "ratios": ratios})
            case kind:
                raise ValueError(f"there are no rows of kind {kind}")
