"""``python -m benchmarks.gpu``: what the device is, whether programs are right on it, one case of each family, then the rest.

A part takes at most ``--budget`` seconds and what the last case needs to end. Called again, it goes on: with what was never
begun, then with what has not had its trials, then with what went wrong. What was tuned is in the database, what was timed in the
file beside it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from ansorlite.errors import AnsorliteError
from ansorlite.machine.kept_gpu import kept as measured
from ansorlite.target import Target, check_runs, resolve
from benchmarks.gpu import right
from benchmarks.gpu.apart import Apart, nothing, side_by_side
from benchmarks.gpu.cases import Case, families, in_order
from benchmarks.gpu.model_cases import ModelCase
from benchmarks.gpu.page import page
from benchmarks.gpu.row import Row, kept, read
from benchmarks.gpu.work import ABOUT, CALIBRATION, DEVICE, Order

#: What processes do before their first case; tests put something of their own in its place.
BEGIN: Callable[[], None] = nothing
#: The same of the programs that are to be right.
RIGHT = right.NAMES

#: Seconds of tuning a model, at most: it goes on in the next part.
_TUNING_A_MODEL: Final = 240.0
#: What comes before and behind the tuning of a case, and of a model: references, PyTorch's compiler, turns.
_BESIDE: Final = 30.0
_BESIDE_A_MODEL: Final = 100.0
#: No case is begun with less than this left to tune.
_LEAST: Final = 20.0
#: Seconds for a check, and how long a case may be beyond the end of its part: what hangs must not cost the part.
_CHECK: Final = 60.0
_BEYOND: Final = 40.0


@click.command()
@click.option("--target", "target_name", default="cuda", show_default=True, help="cuda[:N], opencl[:N], or emulated.")
@click.option("--trials", default=64, show_default=True, type=click.IntRange(min=0), help="For each case; 0: no tuning.")
@click.option("--tuning", default=60.0, show_default=True, help="Seconds of tuning a case, at most.")
@click.option("--budget", default=540.0, show_default=True, help="Seconds after which no other case is begun.")
@click.option("--database", default=Path("gpu.db"), show_default=True, type=click.Path(path_type=Path))
@click.option("--small", is_flag=True, help="Small cases, to try the script out without a GPU.")
@click.option("--case", "patterns", multiple=True, metavar="TEXT", help="Only cases with this in their family or name.")
@click.option("--page", "page_path", type=click.Path(path_type=Path), help="Write the page of results here.")
@click.option("--commit", help="What the page says of the commit; by default what git says.")
def main(
    target_name: str,
    trials: int,
    tuning: float,
    budget: float,
    database: Path,
    small: bool,
    patterns: tuple[str, ...],
    page_path: Path | None,
    commit: str | None,
) -> None:
    """Check and time kernels on a GPU."""
    end = time.monotonic() + budget
    try:
        target = resolve(target_name)
        check_runs(target)
    except AnsorliteError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    results = database.with_suffix(".jsonl")
    rows = read(results, target.key)
    click.echo(f"device: {target.key}")

    def write_page() -> None:
        if page_path is not None:
            page_path.write_text(page(families(small=small), rows, target.key, commit or _commit()))

    def done(row: Row) -> None:
        rows[row.family, row.case] = kept(results, row)
        # Whatever ends this process, the page says what there is by then.
        write_page()

    left: list[str] = []

    def told(row: Row) -> None:
        click.echo(f"{row.family} {row.case}: {row.wrong or row.reference or 'yes'}")

    def asked(family: str, names: Sequence[str]) -> list[Order]:
        """Of what is not known yet, or was wrong; what there is no time for is left."""
        wanted = [name for name in names if not _known(rows.get((family, name)), target)]
        for name in names:
            if name not in wanted:
                told(rows[family, name])
        if time.monotonic() > end:
            left.extend(f"{family} {name}" for name in wanted)
            return []
        wanted.sort(key=lambda name: (family, name) in rows)
        return [Order(family, name, target_name, target.key, small, 0, 0.0, database) for name in wanted]

    with Apart(BEGIN) as apart:
        for order in asked(DEVICE, tuple(ABOUT)):
            done(row := apart.do(order, _CHECK))
            told(row)
        for row in side_by_side(asked(right.FAMILY, RIGHT), _CHECK, BEGIN):
            done(row)
            told(row)
        for case in _in_turn(in_order(families(small=small)), rows):
            if patterns and not any(text in f"{case.family} {case.name}" for text in patterns):
                continue
            known = rows.get((case.family, case.name))
            if known is None or known.wrong or known.unfinished:
                beside, most = (_BESIDE_A_MODEL, _TUNING_A_MODEL) if isinstance(case, ModelCase) else (_BESIDE, tuning)
                limit = min(most, end - time.monotonic() - beside)
                if time.monotonic() > end or (trials and limit < min(_LEAST, most, budget / 4)):
                    left.append(f"{case.family} {case.name}")
                    continue
                last = end - time.monotonic() + _BEYOND
                order = Order(case.family, case.name, target_name, target.key, small, trials, max(limit, 1.0), database)
                done(apart.do(order, last))
            row = rows[case.family, case.name]
            if row.unfinished:
                left.append(f"{case.family} {case.name}, all of its trials ({row.trials} were made)")
            ratio = f", {row.theirs / row.ours:.2f} x PyTorch" if row.theirs and row.ours else ""
            click.echo(f"{case.family} {case.name}: {row.wrong or f'{1e6 * row.ours:.1f} us{ratio}'}")
    for name in left:
        click.echo(f"not reached: {name}")
    write_page()
    sys.exit(1 if left or any(row.wrong for row in rows.values()) else 0)


def _known(row: Row | None, target: Target) -> bool:
    """Whether a row of what comes before the cases stands."""
    return row is not None and not row.wrong and (row.case != CALIBRATION or _calibrated(target))


def _calibrated(target: Target) -> bool:
    """Whether this machine knows what was measured of the device: one that is lent anew does not."""
    return target.kind == "emulated" or (target.gpu is not None and measured(target.gpu.name) is not None)


def _in_turn(cases: list[Case | ModelCase], rows: Mapping[tuple[str, str], Row]) -> list[Case | ModelCase]:
    """Those that were never begun, those without all of their trials, those that went wrong."""

    def rank(case: Case | ModelCase) -> int:
        row = rows.get((case.family, case.name))
        return 0 if row is None else 2 if row.wrong else int(row.unfinished)

    return sorted(cases, key=rank)


def _commit() -> str:
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
