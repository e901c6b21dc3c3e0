"""How well the analytical cost model ranks programs: ``python -m benchmarks.ranking measure FILE``, then ``show FILE``.

Of each of 20 tasks a hundred programs are timed on one thread by processor time, half of them uniform rows and half what a
search under the model finds. ``show`` scores them by the machine's shipped row, its calibrated one, and (each task left out in
its turn) one fitted to the other tasks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ansorlite.calibration.fit import Sample, scores
from ansorlite.calibration.programs import Timed, timed
from ansorlite.cost_model.metrics import peak_score, rank_correlation
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import shipped
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.derivation import derive
from ansorlite.target import Target, host
from ansorlite.task import Task
from ansorlite.te.serialize import dump
from ansorlite.te.serialize import load as load_dag
from benchmarks.kernels.suites import SUITES

#: Suite and case of the tasks.
CASES: Final = (
    ("ansor10", "GMM 512x512x512 batch 1"), ("anchors", "W2 matmul 1024^3"), ("anchors", "W3 matmul 128x3072x768 bias relu"),
    ("anchors", "W4 batch matmul 12x128x64x128"), ("anchors", "W5 matmul 1x1000x2048"),
    ("anchors", "W6 conv 64x56x56 k3 -> 64 bias relu"), ("anchors", "W8 conv 512x7x7 k3 -> 512"),
    ("anchors", "W9 conv 3x224x224 k7 s2 -> 64"), ("anchors", "W10 depthwise 96x56x56 k3"), ("anchors", "W11 softmax 1536x128"),
    ("anchors", "W12 layer norm 128x768"), ("anchors", "W13 sum of squares of 2^20"),
    ("anchors", "W14 transposed conv 256x8x8 k4 s2 -> 128"), ("odd", "matmul 331x331x331"), ("odd", "conv 7^2x331->197 k3"),
    ("odd", "matmul 17x1009x331"), ("memory", "softmax over columns 1024x1024"), ("memory", "transpose add 1024x1024"),
    ("memory", "bias gelu 2048x1024"), ("memory", "sum of columns 2048x2048"), ("bert", "attention weights 12 heads"),
    ("ansor10", "C1D 64x256->256 k5 s1 batch 1"),
)  # fmt: skip

#: By what share two times of a program differ that are not to be believed.
_MUCH: Final = 0.1


@click.group()
def main() -> None:
    """Measure programs, and see how the model ranks them."""


@main.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--programs", default=100, show_default=True, help="Of each task, half of them uniform.")
@click.option("--seed", default=0, show_default=True)
def measure(path: Path, programs: int, seed: int) -> None:
    """Time programs and add them to FILE, one JSON object a task; tasks that FILE has are left out."""
    known = {json.loads(line)["case"] for line in path.read_text().splitlines()} if path.exists() else set()
    for suite, case in CASES:
        if case in known:
            continue
        operator = next(each.operator for each in SUITES[suite] if each.name == case)
        task = Task(operator.tensors(), host(1))
        found = timed(task, programs // 2, programs - programs // 2, np.random.default_rng(seed))
        with path.open("a") as file:
            file.write(json.dumps(_line(case, found)) + "\n")
        told = f"{len(found.seconds)} programs, best {1e6 * min(found.seconds):.0f} us, {unsteady(found.spread):.0%} unsteady"
        click.echo(f"{case}: {told}", err=True)


def unsteady(spread: Sequence[float]) -> float:
    """Of the programs that were timed more than once, the share whose two least times differ much."""
    several = [each for each in spread if math.isfinite(each)]
    return sum(each > _MUCH for each in several) / max(len(several), 1)


def _line(case: str, found: Timed) -> dict[str, Any]:
    candidates = [[each.sketch, each.row] for each in found.candidates]
    return {
        "case": case, "cpu": found.task.target.cpu, "dag": dump(found.task.dag), "candidates": candidates,
        "seconds": found.seconds, "spread": [each if math.isfinite(each) else None for each in found.spread], "searched": found.searched,
    }  # fmt: skip


def samples(path: Path, target: Target) -> list[tuple[str, Sample, NDArray[np.bool_]]]:
    """By task: its name, its programs that this version still has, and which of them come from a search."""
    result = []
    for line in map(json.loads, path.read_text().splitlines()):
        task = Task(load_dag(line["dag"]), target)
        sketches = derive(task)
        names = {sketch.signature for sketch in sketches}
        kept = [n for n, (name, _) in enumerate(line["candidates"]) if name in names]
        candidates = tuple(Candidate(line["candidates"][n][0], tuple(line["candidates"][n][1])) for n in kept)
        seconds = np.array([line["seconds"][n] for n in kept])
        spread = [line["spread"][n] if line["spread"][n] is not None else math.inf for n in kept]
        searched = np.array([line["searched"][n] for n in kept], bool)
        found = Timed(task, candidates, tuple(seconds), tuple(spread), tuple(searched))
        result.append((line["case"], Sample(found.features(sketches), seconds), searched))
    return result


@main.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--calibrated", type=click.Path(dir_okay=False, path_type=Path), help="A row written by `ansorlite calibrate`.")
def show(path: Path, calibrated: Path | None) -> None:
    """Rank correlations and the share of the best speed that the first pick reaches, by task, for each row of constants."""
    target = host(1)
    rows = {"shipped": shipped(target.cpu, target.vector_bytes), "in force": target.machine}
    if calibrated is not None:
        rows["given"] = MachineConstants.of(json.loads(calibrated.read_text()))
    found = samples(path, replace(target, machine=target.machine))
    table = Table("task", "programs")
    for name in rows:
        for what in ("uniform", "searched", "pick"):
            table.add_column(f"{name} {what}")
    columns: list[list[float]] = []
    for case, sample, searched in found:
        figures: list[float] = []
        for machine in rows.values():
            score = scores(target, machine, sample)
            for some in (~searched, searched):
                figures.append(rank_correlation(score[some], sample.seconds[some]))
            figures.append(peak_score(score, sample.seconds, 1))
        columns.append(figures)
        table.add_row(case, str(len(sample.seconds)), *(f"{figure:.2f}" for figure in figures))
    medians, least = np.nanmedian(columns, axis=0), np.nanmin(columns, axis=0)
    table.add_row("median", str(sum(len(sample.seconds) for _, sample, _ in found)), *(f"{figure:.2f}" for figure in medians))
    table.add_row("least", "", *(f"{figure:.2f}" for figure in least))
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
