"""``ansorlite explain``"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ansorlite.best import Programs
from ansorlite.cli import options
from ansorlite.cli.source import load
from ansorlite.codegen.object import DeviceObject
from ansorlite.cost_model.explain import explain
from ansorlite.errors import ArgumentError
from ansorlite.loops.kernel_module import When
from ansorlite.measure.inputs import make_inputs
from ansorlite.programs.build import build_candidate
from ansorlite.programs.kernels import compile_candidate
from ansorlite.records.database import Database
from ansorlite.report.screen import say, screen
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.gpu_limits import registers
from ansorlite.sketch.program import sketch_of
from ansorlite.target import obstacle
from ansorlite.task import Task
from ansorlite.tuner.result import label
from ansorlite.tuner.workload import parts_of, tasks_of

#: Causes of a smaller share of a program's time are not told.
_SMALL = 0.005


@click.command("explain", cls=options.IntListCommand)
@options.source
@options.target
@options.database()
@click.option("--task", "number", type=click.IntRange(min=1), help="Of a model, its number in `ansorlite tasks`.")
@click.option("--candidate", type=int, metavar="ID", help="A record's number in `ansorlite records`, not the best.")
@options.as_json
def command(
    source: str, given: options.Given, target: str, database: Path | None,
    number: int | None, candidate: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Say what bounds each statement of a program, by the analytical cost model, beside what was measured.

    \b
    ansorlite explain kernels.py:matmul --args 512 512 512
    ansorlite explain resnet50.onnx --task 3 --database tuning.db --candidate 17
    """
    workload = load(source, given, target)
    task = workload if isinstance(workload, Task) else _chosen([task for task, _ in tasks_of(parts_of(workload))], number)
    chosen, recorded = _candidate(task, database, candidate)
    found = explain(task, chosen)
    launches = _launches(task, chosen)
    measured = None
    if obstacle(task.target) is None:
        arrays = make_inputs(task.dag, np.random.default_rng(0))
        measured = 1e6 * compile_candidate(task, chosen).benchmark(*arrays).median
    if as_json:
        rows = [
            {"statement": each.name, "total": each.total, "bound": each.bound, "causes": dict(each.microseconds)}
            for each in found.statements
        ]
        total = {"estimated": found.total, "measured": measured, "recorded": recorded, "regions": found.regions}
        more = {"launches": launches} if launches else {}
        options.print_json({"task": task.key, "unit": "us", "statements": rows, **total, **more})
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("statement", "us", "bound by", "us of each thread, by cause"):
        table.add_column(title, justify="right" if title == "us" else "left")
    for each in found.statements:
        causes = sorted(each.microseconds.items(), key=lambda item: -item[1])
        told = ", ".join(f"{cause} {time:.1f}" for cause, time in causes if time >= _SMALL * found.total)
        table.add_row(each.name, f"{each.total:.1f}", each.bound, told)
    say(label(task))
    screen().print(table)
    for number, launch in enumerate(launches, 1):
        say(f"launch {number}: {_told(launch)}")
    what = "launches" if task.target.gpu is not None else "parallel loops"
    beside = [f"{found.total:.1f} us estimated, {found.regions:.1f} of them for {what}"]
    beside += [f"{measured:.1f} us measured now"] if measured is not None else [f"not measured: {obstacle(task.target)}"]
    beside += [f"{recorded:.1f} us recorded"] if recorded is not None else []
    say("; ".join(beside))


def _launches(task: Task, candidate: Candidate) -> list[dict[str, int | None]]:
    """What each launch of a program for a GPU has, and what the assembler says of it, where there is one."""
    gpu = task.target.gpu
    compiled = build_candidate(task, candidate) if gpu is not None else None
    if gpu is None or not isinstance(compiled, DeviceObject):
        return []
    nests = [nest for nest in sketch_of(task, candidate).fold(()).nests if not nest.prepared]
    return [
        {
            "blocks": launch.grid,
            "threads": launch.threads,
            "shared": launch.shared,
            "registers_estimated": int(registers(nest, gpu)),
            "registers": launch.report.registers if launch.report is not None else None,
            "spilled": launch.report.spilled if launch.report is not None else None,
        }
        for nest, launch in zip(nests, compiled.at(When.CALL), strict=True)
    ]


def _told(launch: Mapping[str, int | None]) -> str:
    size = f"{launch['blocks']:,} blocks of {launch['threads']} threads, {launch['shared']:,} bytes of shared memory"
    estimated = f"{launch['registers_estimated']} registers estimated"
    if launch["registers"] is None:
        return f"{size}; {estimated}, no assembler was asked"
    return f"{size}; {launch['registers']} registers, {launch['spilled']} bytes spilled ({estimated})"


def _chosen(tasks: list[Task], number: int | None) -> Task:
    if number is None and len(tasks) == 1:
        return tasks[0]
    if number is None or number > len(tasks):
        raise ArgumentError(f"this model has {len(tasks)} tasks; choose one with --task N, as `ansorlite tasks` numbers them")
    return tasks[number - 1]


def _candidate(task: Task, database: Path | None, record: int | None) -> tuple[Candidate, float | None]:
    """The program to explain, and its latency in microseconds where one is recorded."""
    if database is None:
        if record is not None:
            raise ArgumentError("--candidate is the number of a record; give its --database, too")
        return Programs(None).candidate(task), None
    with Database(database, create=False) as records:
        if record is None:
            return Programs(records).candidate(task), None
        found = records.record(record)
    if found.task != task.key:
        raise ArgumentError(f"record {record} is of another task; `ansorlite records --task KEY` lists those of one")
    latency = found.measurement.latency
    return found.measurement.candidate, None if latency is None else 1e6 * latency
