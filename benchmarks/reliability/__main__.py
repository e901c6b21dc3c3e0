"""``python -m benchmarks.reliability``: long runs that try to make ansorlite give wrong values or lose something.

    python -m benchmarks.reliability programs --interpreted 1000000 --compiled 100000
    python -m benchmarks.reliability page

Each command goes on where the last one stopped: what was found is in a file of JSON lines, and counts add up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.common.results import ResultsFile
from benchmarks.reliability import corruptions, disk, kills, planted, programs, soak
from benchmarks.reliability.page import page
from benchmarks.reliability.results import Attempt, Run, results_file, total
from benchmarks.reliability.supervise import attempt_here, supervise

_ROOT: Final = Path(__file__).parents[2]
PAGE: Final = _ROOT / "docs" / "reliability.md"


@click.group()
def main() -> None:
    """Long runs that try to make ansorlite give wrong values or lose something."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """What all scenarios take."""
    for option in (
        click.option("--results", type=click.Path(path_type=Path), default="reliability.jsonl", show_default=True),
        click.option("--processes", type=click.IntRange(min=1), help="At once.  [default: as many as there are cores]"),
        click.option("--attempt", type=click.IntRange(min=0), help="Make this attempt only, in this process; keep nothing."),
    ):
        command = option(command)
    return command


def _go(
    scenario: str, make: Attempt, goals: Mapping[str, int], *, results: Path, processes: int | None, attempt: int | None
) -> None:
    """Make attempts until the goals are reached; exit code 1 if something was wrong."""
    if attempt is not None:
        found = attempt_here(make, attempt)
        failures = found.failures
        _say(f"{_told(found.counts)}; {len(failures)} failures")
    else:
        file = _opened(results)
        count = processes or len(os.sched_getaffinity(0))
        made = supervise(scenario, make, goals, file, processes=count, listener=_listener(scenario, file))
        failures = tuple(failure for run in made for failure in run.failures)
    for failure in failures:
        click.echo(failure)
    if failures:
        sys.exit(1)


def _opened(path: Path) -> ResultsFile[Run]:
    try:
        return results_file(path)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def _runs(file: ResultsFile[Run]) -> list[Run]:
    return [row for row in file.rows if isinstance(row, Run)]


def _listener(scenario: str, file: ResultsFile[Run]) -> Callable[[Run], None]:
    def told(run: Run) -> None:
        counts = total(run for run in _runs(file) if run.scenario == scenario)
        failed = f", {len(run.failures)} FAILURES" if run.failures else ""
        _say(f"{scenario} {run.number}: {_told(run.counts)} in {run.seconds:.0f} s{failed}; in all {_told(counts)}")

    return told


def _say(line: str) -> None:
    click.echo(line, err=True)


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing"


@main.command("programs")
@click.option("--interpreted", type=click.IntRange(min=1), default=1_000_000, show_default=True)
@click.option("--compiled", type=click.IntRange(min=0), default=100_000, show_default=True)
@_options
def _programs(interpreted: int, compiled: int, **common: Any) -> None:
    """Random rows of random computations, interpreted and compiled."""
    goals = {programs.INTERPRETED: interpreted, programs.COMPILED: compiled}
    _go("programs", programs.attempt_with(compiled / interpreted), goals, **common)


@main.command("kills")
@click.option("--count", type=click.IntRange(min=1), default=66, show_default=True)
@_options
def _kills(count: int, **common: Any) -> None:
    """Tuning that is killed at random instants."""
    _go("kills", kills.attempt_with(), {kills.KILLS: count}, **common)


@main.command("corruptions")
@click.option("--count", type=click.IntRange(min=1), default=1000, show_default=True, help="Of cache files, and of databases.")
@_options
def _corruptions(count: int, **common: Any) -> None:
    """Damaged files of the cache and damaged databases."""
    goals = {corruptions.FILES: count, corruptions.DATABASES: count}
    _go("corruptions", corruptions.attempt_with(), goals, **common)


@main.command("planted")
@_options
def _planted(**common: Any) -> None:
    """Files in the cache that somebody else could have put there."""
    _go("planted", planted.attempt_with(), {planted.PLANTED: len(planted.WAYS)}, **common)


@main.command("disk")
@click.option("--count", type=click.IntRange(min=1), default=60, show_default=True)
@_options
def _disk(count: int, **common: Any) -> None:
    """Disks that are full."""
    _go("disk", disk.attempt_with(), {disk.FULL: count}, **common)


@main.command("soak")
@click.option("--minutes", type=click.FloatRange(min=0.01), default=10.0, show_default=True)
@_options
def _soak(minutes: float, **common: Any) -> None:
    """One attempt of calls from four threads over 300 kernels."""
    _go("soak", soak.attempt_with(minutes), {}, **common)


@main.command("page")
@click.option("--results", type=click.Path(path_type=Path, exists=True), default="reliability.jsonl", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=PAGE, show_default=True)
def _page(results: Path, output: Path) -> None:
    """Write docs/reliability.md from the results."""
    output.write_text(page(_runs(_opened(results))))


if __name__ == "__main__":
    main()
