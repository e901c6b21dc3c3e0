"""``ansorlite report``"""

from __future__ import annotations

from pathlib import Path

import click

from ansorlite.cli import options
from ansorlite.records.database import Database
from ansorlite.report.histories import histories
from ansorlite.report.page import page
from ansorlite.report.screen import say
from ansorlite.report.text import plural
from ansorlite.writing import writing


@click.command("report")
@click.argument("database", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default="report.html", show_default=True, help="Where to write.")
@options.as_json
def command(database: Path, output: Path, as_json: bool) -> None:
    """Write what a database tells as an HTML page: what became of each task, trial by trial, and what went wrong.

    \b
    ansorlite report tuning.db -o report.html
    """
    with Database(database, create=False) as records:
        told = histories(records)
        records.warn()
    with writing(output):
        output.write_text(page(database.name, told), encoding="utf-8")
    if as_json:
        tasks = [
            {
                "name": history.name,
                "task": history.task,
                "target": history.target,
                "trials": len(history.records),
                "errors": len(history.failures),
                "naive_latency": history.naive,
                "best_latency": history.best,
            }
            for history in told
        ]
        options.print_json({"report": str(output), "tasks": tasks})
    else:
        say(f"{plural(len(told), 'task')} of {database} in {output}")
