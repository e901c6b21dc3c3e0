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
from typing import Final

import click

from benchmarks.common.results import ResultsFile
from benchmarks.reliability import programs
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
    scenario: str, attempt: Attempt, goals: Mapping[str, int], results: Path, processes: int | None, only: int | None
) -> None:
    """Make attempts until the goals are reached; exit code 1 if something was wrong."""
    if only is not None:
        found = attempt_here(attempt, only)
        failures = found.failures
        _say(f"{_told(found.counts)}; {len(failures)} failures")
    else:
        try:
            file = results_file(results)
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        count = processes or len(os.sched_getaffinity(0))
        made = supervise(scenario, attempt, goals, file, processes=count, listener=_listener(scenario, file))
        failures = tuple(failure for run in made for failure in run.failures)
    for failure in failures:
        click.echo(failure)
    if failures:
        sys.exit(1)


def _listener(scenario: str, file: ResultsFile[Run]) -> Callable[[Run], None]:
    def told(run: Run) -> None:
        counts = total(row for row in file.rows if isinstance(row, Run) and row.scenario == scenario)
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
def _programs(interpreted: int, compiled: int, results: Path, processes: int | None, attempt: int | None) -> None:
    """Random rows of random computations, interpreted and compiled."""
    goals = {programs.INTERPRETED: interpreted, programs.COMPILED: compiled}
    _go("programs", programs.attempt_with(compiled / interpreted), goals, results, processes, attempt)


if __name__ == "__main__":
    main()
