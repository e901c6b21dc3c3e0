"""Curves of real tuning: the best latency after each trial of tasks that each got the same number of trials.

``python -m tests.unit.task_scheduler.recorded tuning.db`` writes those of a database into ``curves.json``.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement
from ansorlite.task import Task
from ansorlite.task_scheduler import describe
from ansorlite.te.serialize import load
from ansorlite.tuner.result import label

FILE: Final = Path(__file__).with_name("curves.json")


@dataclass(frozen=True)
class Recorded:
    """One task.

    Attributes:
        tag: equal for tasks that are similar.
        best: the lowest latency after each trial, in seconds; the first is that of the loops as written.
    """

    name: str
    flops: float
    tag: str
    best: tuple[float, ...]


def recorded() -> tuple[Recorded, ...]:
    """14 tasks (matrix products, convolutions, softmax, norms) with 64 trials each, on two threads."""
    return tuple(
        Recorded(e["name"], e["flops"], e["tag"], _unpacked(e["falls"], e["trials"])) for e in json.loads(FILE.read_text())
    )


def _unpacked(falls: list[tuple[int, float]], trials: int) -> tuple[float, ...]:
    best: list[float] = []
    for (begin, latency), (end, _) in zip(falls, [*falls[1:], (trials, 0.0)], strict=True):
        best += [latency] * (end - begin)
    return tuple(best)


def _falls(measurements: list[Measurement]) -> list[tuple[int, float]]:
    """Each new best and the trial that it came with."""
    falls: list[tuple[int, float]] = []
    for trial, measurement in enumerate(measurements):
        latency = float(f"{measurement.latency:.4g}") if measurement.checked and measurement.latency is not None else math.inf
        if not falls or latency < falls[-1][1]:
            falls.append((trial, latency))
    return falls


def main(path: str) -> None:
    with Database(path, create=False) as database:
        entries = []
        for known in database.tasks():
            dag = load(known.dag)
            task = Task([*dag.inputs, *dag.outputs])
            info = describe(task)
            measurements = [record.measurement for record in database.records(known.key)]
            falls = _falls(measurements)
            entries.append(
                {"name": label(task), "flops": info.flops, "tag": repr(info.tag), "trials": len(measurements), "falls": falls}
            )
    FILE.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
