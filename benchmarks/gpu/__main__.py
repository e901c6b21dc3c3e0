"""``python -m benchmarks.gpu``: first whether programs are right on the device, then one case of each family, then the rest.

A part takes at most ``--budget`` seconds; called again, it goes on. What was tuned is in the database, what was timed in the file
beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
import numpy as np

from ansorlite.errors import AnsorliteError
from ansorlite.loops.nodes import Function
from ansorlite.platforms import build
from ansorlite.programs.build import kernel_on
from ansorlite.runtime.devices import device_of
from ansorlite.target import Target, check_runs, resolve
from benchmarks.gpu.cases import FAMILIES, SMALL, Case, in_order
from benchmarks.gpu.model_cases import ModelCase
from benchmarks.gpu.models import run_model
from benchmarks.gpu.page import page
from benchmarks.gpu.session import Row, run
from tests.gpu_programs import GOLDEN, Program

#: Seconds of tuning one case, at most.
_TUNING: Final = 60.0
#: The same of a model, whose tuning goes on in the next part.
_TUNING_A_MODEL: Final = 240.0
#: No case is begun with less than this left: it could not end in time.
_LAST: Final = 90.0


@click.command()
@click.option("--target", "target_name", default="cuda", show_default=True, help="cuda[:N], opencl[:N], or emulated.")
@click.option("--trials", default=64, show_default=True, type=click.IntRange(min=0), help="For each case; 0: no tuning.")
@click.option("--budget", default=540.0, show_default=True, help="Seconds after which no other case is begun.")
@click.option("--database", default=Path("gpu.db"), show_default=True, type=click.Path(path_type=Path))
@click.option("--small", is_flag=True, help="Small cases, to try the script out without a GPU.")
@click.option("--case", "patterns", multiple=True, metavar="TEXT", help="Only cases with this in their family or name.")
@click.option("--page", "page_path", type=click.Path(path_type=Path), help="Write the page of results here.")
def main(
    target_name: str, trials: int, budget: float, database: Path, small: bool, patterns: tuple[str, ...], page_path: Path | None
) -> None:
    """Check and time kernels on a GPU."""
    end = time.monotonic() + budget
    try:
        target = resolve(target_name)
        check_runs(target)
    except AnsorliteError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    families, results = SMALL if small else FAMILIES, database.with_suffix(".jsonl")
    rows = {(row.family, row.case): row for row in _read(results) if row.device == target.key}
    click.echo(f"device: {target.key}")
    for name, program in GOLDEN.items():
        if ("right", name) not in rows:
            rows["right", name] = _kept(results, _checked(name, program, target))
        click.echo(f"right {name}: {rows['right', name].wrong or 'yes'}")
    left = []
    for case in in_order(families):
        if patterns and not any(text in f"{case.family} {case.name}" for text in patterns):
            continue
        known = rows.get((case.family, case.name))
        if known is None or known.wrong or known.unfinished:
            if time.monotonic() + min(_LAST, budget / 2) > end:
                left.append(f"{case.family} {case.name}")
                continue
            known = rows[case.family, case.name] = _kept(results, _run(case, target, trials, end, database))
            if known.unfinished:
                left.append(f"{case.family} {case.name}, all of its trials ({known.trials} were made)")
        ratio = f", {known.theirs / known.ours:.2f} x PyTorch" if known.theirs else ""
        click.echo(f"{case.family} {case.name}: {known.wrong or f'{1e6 * known.ours:.1f} us{ratio}'}")
    for name in left:
        click.echo(f"not reached: {name}")
    if page_path is not None:
        levels = device_of(target).peaks(target.threads).levels
        page_path.write_text(page(families, rows, target.key, _commit(), levels[-1].copy))
    sys.exit(1 if left or any(row.wrong for row in rows.values()) else 0)


def _run(case: Case | ModelCase, target: Target, trials: int, end: float, database: Path) -> Row:
    if not isinstance(case, ModelCase):
        return run(case, target, trials, _TUNING, database)
    # What comes behind the tuning takes a minute.
    limit = min(_TUNING_A_MODEL, max(end - time.monotonic() - _LAST, 1.0))
    return run_model(case, target, trials, limit, database)


def _checked(name: str, program: Program, target: Target) -> Row:
    """Whether a program written by hand is right there."""
    start = time.time()
    function: Function = program.function
    inputs = program.arrays()[: -function.outputs]
    wrong = ""
    try:
        kernel = kernel_on(build(function, target), function.params, target, None)
        np.testing.assert_allclose(kernel(*inputs), program.meaning(*inputs), rtol=1e-5, atol=1e-5)
    except Exception as error:
        wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return Row("right", name, target.key, wrong, 0.0, 0.0, 0.0, 0, time.time() - start, "numpy", start)


def _kept(results: Path, row: Row) -> Row:
    with results.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")
    return row


def _read(results: Path) -> list[Row]:
    """The last row of a case counts."""
    return [Row(**json.loads(line)) for line in results.read_text().splitlines()] if results.exists() else []


def _commit() -> str:
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
