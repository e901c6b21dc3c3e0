"""``python -m benchmarks.kernels``: tune the suites, and time the kernels beside those of other systems."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from threadpoolctl import threadpool_limits

import ansorlite as al
from ansorlite.target import host
from benchmarks.common.command import chosen, command_line, present
from benchmarks.common.machine import Machine
from benchmarks.common.tables import geometric_mean, show
from benchmarks.kernels import session, tables
from benchmarks.kernels.goals import goals
from benchmarks.kernels.page import page
from benchmarks.kernels.peers import PEERS
from benchmarks.kernels.results import CALLED, UNTUNED, Results, Run, Timing, Tuning
from benchmarks.kernels.session import Settings
from benchmarks.kernels.suites import SUITES, Case

_SEEDS: Final = range(5)


@click.command()
@click.option(
    "--suite", "suite_names", multiple=True, default=("all",), help="A suite's name, or all. May be given several times."
)
@click.option(
    "--case", "patterns", multiple=True, metavar="TEXT", help="Only cases with this in their name; may be given several times."
)
@click.option("--trials", default=64, show_default=True, type=click.IntRange(min=0), help="For each case; 0: no tuning.")
@click.option("--against", default="torch,onnxruntime,numpy", show_default=True, help="Peers, separated by commas; may be empty.")
@click.option("--untuned", is_flag=True, help="Also time the program that there is without any trial.")
@click.option("--variance", is_flag=True, help="Tune with five seeds instead, and compare what they find.")
@click.option("--threads", type=click.IntRange(min=1), help="For every system.  [default: as many as there are cores]")
@click.option("--seed", default=0, show_default=True)
@click.option("--seconds", default=5.0, show_default=True, help="How long the comparison of one case lasts.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Of tuning one case, at most.")
@click.option("--budget", type=float, metavar="SECONDS", help="After this, no other case is begun.")
@click.option(
    "--database", type=click.Path(path_type=Path), help="Keeps measurements, and results in a file beside it: the run goes on."
)
@click.option("--again", is_flag=True, help="Also time what the results file has already.")
@click.option("--page", "page_path", type=click.Path(path_type=Path), help="Write the page of results here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(
    suite_names: tuple[str, ...],
    patterns: tuple[str, ...],
    trials: int,
    against: str,
    untuned: bool,
    variance: bool,
    threads: int | None,
    seed: int,
    seconds: float,
    time_limit: float | None,
    budget: float | None,
    database: Path | None,
    again: bool,
    page_path: Path | None,
    as_json: bool,
) -> None:
    """Tune the suites' kernels and time them beside other systems', in turns, on the same threads."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    screen = Console(stderr=True, highlight=False)
    suites = chosen(suite_names, SUITES, "suite")
    known_cases = [(suite, case) for suite in suites for case in SUITES[suite]]
    for pattern in patterns:
        if not any(pattern in case.name for _, case in known_cases):
            raise click.UsageError(f"no case of {', '.join(suites)} has {pattern!r} in its name")
    cases = [(suite, case) for suite, case in known_cases if not patterns or any(pattern in case.name for pattern in patterns)]
    run = Run(threads or host().threads, trials, seed)
    peers = present(against, PEERS, lambda name: PEERS[name].missing(), screen)
    records = database.with_suffix(".peers") if database else None
    settings = Settings(run, peers, untuned, seconds, time_limit, records)
    try:
        results = Results(database.with_suffix(".jsonl") if database else None)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    end = None if budget is None else time.monotonic() + budget
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(run.threads))
        store = stack.enter_context(al.Database(database or ":memory:"))
        results.add(Machine.here(run.threads, {name: PEERS[name].version() for name in settings.against}))
        for suite, case in _until(cases, end, screen):
            if variance:
                if again or (suite, case.name) not in results.variances([suite], run.threads, trials):
                    results.add(session.vary(suite, case, settings, _SEEDS))
                continue
            known = results.timings([suite], run)
            if not again and (suite, case.name) in known:
                continue
            done = results.tunings([suite], run).get((suite, case.name))
            if trials and (done is None or done.trials < trials):
                tuning = session.tune(suite, case, settings, store)
                if tuning.trials > tuning.restored:
                    results.add(tuning)
            timing = session.compare(suite, case, settings, store if trials else None)
            results.add(timing)
            screen.print(_line(timing))
    timings = results.timings(suites, run)
    tunings = results.tunings(suites, run)
    machine = results.machine(run.threads)
    seeds = results.variances(suites, run.threads)
    found = tables.everything(machine.all, timings, tunings, seeds, suites)
    if (aims := goals(timings, tunings, seeds)).rows:
        found.insert(0, aims)
    if page_path is not None:
        page_path.write_text(page(machine, command_line("benchmarks.kernels"), list(timings.values()), found))
    if as_json:
        click.echo(json.dumps(_json(machine, list(timings.values()), list(tunings.values()))))
    else:
        for table in found:
            show(table)
    if any(CALLED in timing.wrong for timing in timings.values()):
        sys.exit(1)


def _until(cases: Sequence[tuple[str, Case]], end: float | None, screen: Console) -> Iterator[tuple[str, Case]]:
    for number, (suite, case) in enumerate(cases):
        if end is not None and time.monotonic() > end:
            screen.print(f"the budget is spent: {len(cases) - number} cases are left; the same command goes on with them")
            return
        yield suite, case


def _line(timing: Timing) -> str:
    against = ", ".join(f"{spread.median:.2f} x {peer}" for peer, spread in timing.called.items() if peer != UNTUNED)
    return f"{timing.suite}  {timing.case}  {timing.seconds[CALLED] * 1e3:.3f} ms  {against}"


def _json(machine: Machine, timings: Sequence[Timing], tunings: Sequence[Tuning]) -> dict[str, object]:
    peers = dict.fromkeys(peer for timing in timings for peer in timing.called)
    return {
        "geometric_means": {peer: geometric_mean(t.called[peer].median for t in timings if peer in t.called) for peer in peers},
        "machine": asdict(machine),
        "timings": [asdict(timing) for timing in timings],
        "tunings": [asdict(tuning) for tuning in tunings],
    }


if __name__ == "__main__":
    main()
