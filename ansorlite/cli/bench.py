"""``ansorlite bench``"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from ansorlite.cli import options
from ansorlite.cli.program import Array, Runnable, fixed, load_inputs
from ansorlite.cli.source import load
from ansorlite.errors import ArgumentError
from ansorlite.graph.hybrid import AnyModel
from ansorlite.report import profile as profiles
from ansorlite.report.compare import Comparison, compare, time_alone
from ansorlite.report.peers import onnxruntime_session
from ansorlite.report.screen import say, screen
from ansorlite.report.text import duration, times
from ansorlite.task import Task

_AGAINST = ("naive", "onnxruntime")

#: Of the table of kernels.
_ROWS = 40
_WIDE = 120


@click.command("bench", cls=options.IntListCommand)
@options.source
@options.database()
@options.target
@options.space
@click.option("--against", type=click.Choice(_AGAINST), help="What to compare with, timed in turns with ours.")
@click.option("--seconds", default=5.0, show_default=True, type=click.FloatRange(min=0, min_open=True), help="How long to time.")
@click.option("--profile/--no-profile", default=True, help="Of a model, also show how long each kernel takes in place.")
@options.seed
@options.as_json
def command(
    source: str,
    given: options.Given,
    database: Path | None,
    target: str,
    space: str | None,
    against: str | None,
    seconds: float,
    profile: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Time SOURCE with the best programs known: the median of many runs; of a model, each kernel's, too.

    \b
    ansorlite bench resnet50.onnx --database tuning.db --against onnxruntime
    """
    workload = fixed(load(source, given, target), {})
    program = Runnable.make(workload, database, space)
    arrays = load_inputs(program, {}, seed)
    ours: Callable[[], object] = lambda: program(arrays)  # noqa: E731
    if against is None:
        result = Comparison(time_alone(ours, seconds), None)
    else:
        result = compare(ours, _other(against, source, workload, arrays), seconds)
    steps = program.profile(arrays) if profile and program.profile else None
    if as_json:
        told = {"ours": result.ours, "against": result.against, "ratio": result.ratio, "compared_with": against}
        options.print_json(told | {"steps": profiles.as_json(steps) if steps else None})
        return
    say(f"ours         {duration(result.ours)}")
    if result.against is not None and result.ratio is not None:
        say(f"{against:<12} {duration(result.against)}\nratio        {times(result.ratio)}")
    if steps:
        printed = screen()
        printed.print("", profiles.table(steps, _ROWS, printed.width >= _WIDE), sep="\n")


def _other(against: str, source: str, workload: Task | AnyModel, arrays: Mapping[str, Array]) -> Callable[[], object]:
    if against == "naive":
        naive = Runnable.make_naive(workload)
        return lambda: naive(arrays)
    if isinstance(workload, Task):
        raise ArgumentError("onnxruntime runs ONNX models, not functions in a Python file; compare with --against naive")
    return onnxruntime_session(source, workload.target.threads, arrays)
