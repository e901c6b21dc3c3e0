"""How well the analytical cost model ranks programs: ``python -m benchmarks.ranking compile FOLDER``, then ``measure FOLDER
FILE``, then ``show FILE``.

Of each of 22 tasks a hundred programs are timed on one thread by processor time, half of them uniform rows and half what a
search under the model finds: compiled first, as that takes longest and disturbs
whatever is timed beside it. ``show`` scores them by the machine's shipped row, the
one in force, and another one.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ansorlite.calibration.fit import Sample, scores
from ansorlite.calibration.programs import Drawn, Timed, drawn
from ansorlite.cost_model.metrics import peak_score, rank_correlation
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import shipped
from ansorlite.programs.packing import pack, unpack
from ansorlite.sketch.candidate import Candidate
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

#: By what share two times of a program differ that are not to be believed, and what share of a task's programs may be so.
_MUCH: Final = 0.05
_FEW: Final = 0.02


@click.group()
def main() -> None:
    """Measure programs, and see how the model ranks them."""


@main.command("compile")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--programs", default=100, show_default=True, help="Of each task, half of them uniform.")
@click.option("--processes", default=2, show_default=True)
@click.option("--seed", default=0, show_default=True)
def compile_programs(folder: Path, programs: int, processes: int, seed: int) -> None:
    """Draw and compile programs, and put them into FOLDER, a file a task; tasks that FOLDER has are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for line in pool.map(_compiled, repeat(folder), range(len(CASES)), repeat(programs), repeat(seed)):
            click.echo(line, err=True)


def _compiled(folder: Path, number: int, programs: int, seed: int) -> str:
    suite, case = CASES[number]
    path = folder / f"{number:02}"
    if not path.exists():
        operator = next(each.operator for each in SUITES[suite] if each.name == case)
        task = Task(operator.tensors(), host(1))
        found = drawn(task, programs // 2, programs - programs // 2, np.random.default_rng(seed))
        candidates = [each.trace for each in found.candidates]
        line = {"case": case, "cpu": task.target.cpu, "dag": dump(task.dag), "candidates": candidates, "searched": found.searched}
        codes = [pack(each) for each in found.objects]
        head = json.dumps(line | {"lengths": [len(code) for code in codes]}).encode()
        path.with_suffix(".part").write_bytes(b"\n".join([head, b"".join(codes)]))
        path.with_suffix(".part").rename(path)
    return case


def _opened(path: Path) -> tuple[dict[str, Any], Drawn]:
    """What :func:`_compiled` wrote, but for the code; and the programs."""
    head, _, codes = path.read_bytes().partition(b"\n")
    line = json.loads(head)
    ends = np.cumsum(line.pop("lengths")).tolist()
    objects = tuple(unpack(codes[begin:end]) for begin, end in zip([0, *ends], ends, strict=False))
    candidates = tuple(map(Candidate, line["candidates"]))
    return line, Drawn(Task(load_dag(line["dag"]), host(1)), candidates, objects, tuple(line["searched"]))


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--seconds", type=float, default=math.inf, help="Begin no other task after so many.")
@click.option("--seed", default=0, show_default=True)
def measure(folder: Path, path: Path, seconds: float, seed: int) -> None:
    """Time the programs of FOLDER and add them to FILE, one JSON object a task.

    Of tasks that FILE has, those are timed again of which many a program's two least times differ; the least of all counts.
    """
    begin = time.monotonic()
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {line["case"]: line for line in lines}
    parts = {CASES[int(part.name)][1]: part for part in sorted(folder.glob("[0-9][0-9]"))}
    for case, part in sorted(parts.items(), key=lambda each: unsteady(known[each[0]]["times"]) if each[0] in known else -1.0):
        if case in known and unsteady(known[case]["times"]) <= _FEW:
            continue
        if time.monotonic() - begin > seconds:
            break
        line, programs = _opened(part)
        found = programs.timed(np.random.default_rng(seed))
        before = known[case]["times"] if case in known else [[] for _ in found.seconds]
        times = [sorted((*old, *new))[:2] for old, *new in zip(before, found.seconds, found.second, strict=True)]
        known[case] = line | {"times": times}
        path.write_text("".join(json.dumps(each) + "\n" for each in known.values()))
        best = 1e6 * min(each[0] for each in times)
        told = f"{len(times)} programs, best {best:.0f} us, {unsteady(times):.0%} unsteady"
        click.echo(f"{case}: {told} ({time.monotonic() - begin:.0f} s)", err=True)


def unsteady(times: Sequence[Sequence[float]]) -> float:
    """Of the programs that were timed more than once, the share whose two least times differ much."""
    several = [second / least - 1 for least, second in times if math.isfinite(second)]
    return sum(each > _MUCH for each in several) / max(len(several), 1)


def samples(path: Path, target: Target) -> list[tuple[str, Sample, NDArray[np.bool_]]]:
    """By task: its name, its programs, and which of them come from a search."""
    result = []
    for line in map(json.loads, path.read_text().splitlines()):
        task = Task(load_dag(line["dag"]), target)
        seconds, second = np.array(line["times"]).T
        searched = np.array(line["searched"], bool)
        found = Timed(task, tuple(map(Candidate, line["candidates"])), tuple(seconds), tuple(second), tuple(searched))
        result.append((line["case"], found.sample(), searched))
    return result


def _figures(target: Target, sample: Sample, searched: NDArray[np.bool_]) -> list[float]:
    """Rank correlations of uniform programs and of searched ones, and what the first pick of all reaches."""
    score = scores(target, target.machine, sample)
    ranks = [rank_correlation(score[some], sample.seconds[some]) for some in (~searched, searched)]
    return [*ranks, peak_score(score, sample.seconds, 1)]


@main.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--calibrated", type=click.Path(dir_okay=False, path_type=Path), help="A row written by `ansorlite calibrate`.")
def show(path: Path, calibrated: Path | None) -> None:
    """Rank correlations and the share of the best speed that the first pick reaches, by task, for each row of constants."""
    target = host(1)
    rows = {"shipped": shipped(target.cpu, target.features, target.vector_bytes), "in force": target.machine}
    if calibrated is not None:
        rows["given"] = MachineConstants.of(json.loads(calibrated.read_text()))
    table = Table("task", "programs")
    columns: list[list[float]] = []
    for name, machine in rows.items():
        here = replace(target, machine=machine)
        # What fits into a cache is a matter of the row, too: so each has features of its own.
        found = samples(path, here)
        for what in ("uniform", "searched", "pick"):
            table.add_column(f"{name} {what}")
        columns += zip(*(_figures(here, sample, searched) for _, sample, searched in found), strict=True)
    figures = np.array(columns).T
    for (case, sample, _), line in zip(found, figures, strict=True):
        table.add_row(case, str(len(sample.seconds)), *(f"{figure:.2f}" for figure in line))
    medians, least = np.nanmedian(figures, axis=0), np.nanmin(figures, axis=0)
    table.add_row("median", str(sum(len(sample.seconds) for _, sample, _ in found)), *(f"{figure:.2f}" for figure in medians))
    table.add_row("least", "", *(f"{figure:.2f}" for figure in least))
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
