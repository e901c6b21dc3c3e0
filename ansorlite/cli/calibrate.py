"""``ansorlite calibrate``"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click
from rich.table import Table

from ansorlite.calibration.calibrate import calibrate
from ansorlite.calibration.fitted import fit_to_programs
from ansorlite.calibration.gpu import calibrate_gpu
from ansorlite.cli import options
from ansorlite.errors import ArgumentError
from ansorlite.machine.families import shipped
from ansorlite.machine.kept import keep
from ansorlite.machine.kept_gpu import keep as keep_gpu
from ansorlite.report.screen import say, screen
from ansorlite.target import Target, check_runs, resolve


@click.command("calibrate")
@options.target
@click.option("--fit", is_flag=True, help="Also fit the constants to some 400 small programs: a minute and a half more.")
@click.option("--dry-run", is_flag=True, help="Only print what is measured.")
@options.as_json
def command(target: str, fit: bool, dry_run: bool, as_json: bool) -> None:
    """Measure what instructions, caches and memory cost on this machine, and keep it for the analytical cost model; of a GPU
    what its data sheet promises.

    \b
    ansorlite calibrate
    ansorlite calibrate --fit
    ansorlite calibrate --target cuda
    """
    facts = resolve(target)
    check_runs(facts)
    if facts.kind in ("cuda", "opencl"):
        if fit:
            raise ArgumentError("--fit is for CPUs; what is measured of a GPU is taken as it is")
        _calibrate_gpu(facts, dry_run, as_json)
        return
    start = shipped(facts.cpu, facts.features, facts.vector_bytes)
    found = calibrate(facts, start, lambda what: say(f"measuring {what}", stderr=True))
    ranks: dict[str, Any] = {}
    if fit:
        say("fitting the constants to small programs", stderr=True)
        found, ranks["before"], ranks["after"] = fit_to_programs(facts, found)
    if not dry_run:
        keep(facts.cpu, found)
    if as_json:
        options.print_json({"target": facts.key, "machine": found.as_dict(), "kept": not dry_run, "rank_correlation": ranks})
        return
    _print(found.as_dict(), start)
    if ranks:
        say(f"rank correlation on tasks left out: {ranks['before']:.2f} as measured, {ranks['after']:.2f} fitted")


def _calibrate_gpu(target: Target, dry_run: bool, as_json: bool) -> None:
    gpu = target.gpu
    assert gpu is not None
    found = calibrate_gpu(target, say=lambda what: say(f"measuring {what}", stderr=True))
    if not dry_run:
        keep_gpu(gpu.name, found)
    if as_json:
        options.print_json({"target": target.key, "gpu": asdict(found), "kept": not dry_run})
        return
    _print(asdict(found), gpu)


def _print(found: Mapping[str, float], before: object) -> None:
    """What was measured, beside what was taken for granted."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("constant", "measured", "before"):
        table.add_column(title, justify="left" if title == "constant" else "right")
    for name, value in found.items():
        table.add_row(name, f"{value:.4g}", f"{getattr(before, name):.4g}")
    screen().print(table)
