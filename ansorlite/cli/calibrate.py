"""``ansorlite calibrate``"""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from ansorlite.calibration.calibrate import calibrate
from ansorlite.calibration.fitted import fit_to_programs
from ansorlite.cli import options
from ansorlite.machine.families import shipped
from ansorlite.machine.kept import keep
from ansorlite.report.screen import say, screen
from ansorlite.target import check_runs, resolve


@click.command("calibrate")
@options.target
@click.option("--fit", is_flag=True, help="Also fit the constants to some 400 small programs: a minute and a half more.")
@click.option("--dry-run", is_flag=True, help="Only print what is measured.")
@options.as_json
def command(target: str, fit: bool, dry_run: bool, as_json: bool) -> None:
    """Measure what instructions, caches and memory cost on this machine, and keep it for the analytical cost model.

    \b
    ansorlite calibrate
    ansorlite calibrate --fit
    """
    facts = resolve(target)
    check_runs(facts)
    start = shipped(facts.cpu, facts.vector_bytes)
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
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("constant", "measured", "shipped"):
        table.add_column(title, justify="left" if title == "constant" else "right")
    for name, value in found.as_dict().items():
        table.add_row(name, f"{value:.4g}", f"{getattr(start, name):.4g}")
    screen().print(table)
    if ranks:
        say(f"rank correlation on tasks left out: {ranks['before']:.2f} as measured, {ranks['after']:.2f} fitted")
