"""``ansorlite presets``"""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table

from ansorlite.cli import options
from ansorlite.report.screen import screen
from ansorlite.tuner.presets import PRESETS


@click.command("presets")
@options.as_json
def command(as_json: bool) -> None:
    """List the systems that `ansorlite tune --preset` can tune as, and what each is put together from.

    \b
    ansorlite presets --json
    """
    if as_json:
        options.print_json({name: asdict(preset) for name, preset in PRESETS.items()})
        return
    table = Table(box=None, header_style="dim")
    for head in ("preset", "what it is", "strategy", "cost model", "round", "after"):
        table.add_column(head, overflow="fold", no_wrap=head == "preset")
    for name, preset in PRESETS.items():
        table.add_row(name, preset.about, preset.strategy, preset.cost_model, str(preset.round), preset.source)
    screen().print(table)
