"""The command: tune the models, and time them beside other systems'."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from threadpoolctl import threadpool_limits

import ansorlite as al
from ansorlite.graph.precision import PRECISIONS
from ansorlite.target import host
from benchmarks.common.command import chosen, command_line, present
from benchmarks.common.machine import Machine
from benchmarks.common.tables import geometric_mean, show
from benchmarks.models import session
from benchmarks.models.page import is_wrong, page, results
from benchmarks.models.peers import PEERS, missing, versions
from benchmarks.models.results import OURS, Results, Run, Timing
from benchmarks.models.session import Settings
from benchmarks.models.table import MODELS


@click.command()
@click.option("--model", "names", multiple=True, default=("all",), help="A model's name, or all. May be given several times.")
@click.option("--trials", default=200, show_default=True, type=click.IntRange(min=0), help="For each task; 0: no tuning.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Of tuning one model, at most.")
@click.option("--against", default=",".join(PEERS), show_default=True, help="Peers, separated by commas; may be empty.")
@click.option("--untuned", is_flag=True, help="Also time the programs that there are without any trial.")
@click.option("--few", default=0, type=click.IntRange(min=0), help="Also tune with so few trials for each task, from nothing.")
@click.option("--threads", type=click.IntRange(min=1), help="For every system.  [default: as many as there are cores]")
@click.option("--precision", type=click.Choice(PRECISIONS), default=PRECISIONS[0], show_default=True, help="Of float32 products.")
@click.option("--seed", default=0, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="How long the comparison of one model lasts.")
@click.option(
    "--database", type=click.Path(path_type=Path), help="Keeps measurements, and results in a file beside it: the run goes on."
)
@click.option("--again", is_flag=True, help="Also time what the results file has already.")
@click.option("--page", "page_path", type=click.Path(path_type=Path), help="Write the page of results here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    names: tuple[str, ...],
    trials: int,
    time_limit: float | None,
    against: str,
    untuned: bool,
    few: int,
    threads: int | None,
    precision: str,
    seed: int,
    seconds: float,
    database: Path | None,
    again: bool,
    page_path: Path | None,
    as_json: bool,
) -> None:
    """Tune whole models and time them beside other systems', in turns, on the same threads."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    screen = Console(stderr=True, highlight=False)
    models = chosen(names, MODELS, "model")
    run = Run(threads or host().threads, trials, seed, time_limit if trials else None, precision)
    settings = Settings(run, present(against, PEERS, missing, screen), untuned, few, seconds)
    try:
        rows = Results(database.with_suffix(".jsonl") if database else None)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(run.threads))
        store = stack.enter_context(al.Database(database or ":memory:"))
        rows.add(Machine.here(run.threads, versions(settings.against)))
        for name in models:
            if again or name not in rows.timings(run):
                example = session.example(MODELS[name], settings)
                if trials:
                    rows.add(session.tune(name, example, settings, store))
                timing = session.compare(name, example, settings, store if trials else None)
                rows.add(timing)
                screen.print(_line(timing), soft_wrap=True)
    timings = {name: timing for name, timing in rows.timings(run).items() if name in models}
    table = results(timings, rows.tuning_seconds(run), rows.nearly(run))
    if page_path is not None:
        page_path.write_text(page(rows.machine(run.threads), command_line("benchmarks.models"), list(timings.values()), table))
    if as_json:
        click.echo(json.dumps(_json(rows.machine(run.threads), timings)))
    else:
        show(table)
    if any(map(is_wrong, timings.values())):
        sys.exit(1)


def _line(timing: Timing) -> str:
    ratios = ", ".join(f"{spread.median:.2f} x {who}" for who, spread in timing.ratios.items())
    return f"{timing.model}  {timing.seconds[OURS] * 1e3:.3f} ms  {ratios}  difference {timing.differences[OURS]:.0e}"


def _json(machine: Machine, timings: dict[str, Timing]) -> dict[str, object]:
    contenders = dict.fromkeys(who for timing in timings.values() for who in timing.ratios)
    return {
        "geometric_means": {
            who: geometric_mean(t.ratios[who].median for t in timings.values() if who in t.ratios) for who in contenders
        },
        "machine": asdict(machine),
        "timings": [asdict(timing) for timing in timings.values()],
    }
