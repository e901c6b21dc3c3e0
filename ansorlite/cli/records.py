"""``ansorlite records``"""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ansorlite.cli import options
from ansorlite.errors import RecordsError
from ansorlite.records.database import Database
from ansorlite.records.jsonlines import export_lines, measurement_json
from ansorlite.records.measurement import Outcome, Record
from ansorlite.records.packs import import_file
from ansorlite.report.screen import say, screen
from ansorlite.report.tables import cropped
from ansorlite.report.text import duration, plural
from ansorlite.writing import writing


@click.command("records")
@click.argument("database", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--task", help="Only records of the task with this key.")
@click.option("--outcome", type=click.Choice([outcome.value for outcome in Outcome]), help="Only records that ended so.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0), help="How many to list; --json lists all.")
@click.option("--export", "export_path", type=click.Path(path_type=Path), help="Write everything as JSON lines ('-' is stdout).")
@click.option(
    "--import", "import_path", type=click.Path(dir_okay=False, path_type=Path), help="First add a file of JSON lines, or a pack."
)
@options.as_json
def command(
    database: Path,
    task: str | None,
    outcome: str | None,
    limit: int,
    export_path: Path | None,
    import_path: Path | None,
    as_json: bool,
) -> None:
    """Look into a database of measurements: how many ended how, and which.

    \b
    ansorlite records tuning.db
    ansorlite records tuning.db --outcome crash
    ansorlite records tuning.db --export tuning.jsonl
    ansorlite records other.db --import tuning.jsonl
    """
    if as_json and export_path == Path("-"):
        raise click.UsageError("--export - and --json both want stdout; export to a file")
    with Database(database, create=import_path is not None) as records:
        added = None if import_path is None else import_file(records, import_path)
        if export_path is not None:
            _export(records, export_path)
        if task is not None:
            _check_task(records, task)
        wanted = None if outcome is None else Outcome(outcome)
        counts = {found.value: count for found, count in records.outcomes(task).items()}
        found = records.records(task=task, outcome=wanted)
        records.warn()
    if as_json:
        options.print_json({"outcomes": counts, "records": [_json(record) for record in found], "imported": added})
    elif export_path is None:
        if added is not None:
            say(f"{plural(added, 'new measurement')} from {import_path}")
        _print(counts, found, limit)


def _check_task(records: Database, key: str) -> None:
    keys = [entry.key for entry in records.tasks()]
    if key in keys:
        return
    like = difflib.get_close_matches(key, keys, n=1, cutoff=0.0)
    nearest = f"; the nearest is {like[0]!r}" if like else ""
    raise RecordsError(f"no task in {records.path} has the key {key!r}{nearest}; ansorlite records --json lists them")


def _export(database: Database, path: Path) -> None:
    with writing(path), click.open_file(str(path), "w", encoding="utf-8") as out:
        for line in export_lines(database):
            out.write(line + "\n")


def _json(record: Record) -> dict[str, Any]:
    candidate = record.measurement.candidate
    fields = measurement_json(record)
    return {
        "id": record.id,
        "here": record.measurement.here,
        "candidate": candidate.trace,
        **{name: fields[name] for name in fields if name not in ("kind", "schema", "trace", "seal")},
        "command": list(record.command),
    }


def _print(counts: dict[str, int], records: list[Record], limit: int) -> None:
    printed = screen()
    total = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    printed.print(f"{plural(sum(counts.values()), 'measurement')}: {total or 'none'}")
    if not records or not limit:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("id", "outcome", "latency"):
        table.add_column(title, no_wrap=True)
    for title in ("candidate", "task"):
        table.add_column(title, max_width=60)
    for record in records[-limit:]:
        measurement = record.measurement
        table.add_row(
            str(record.id),
            measurement.outcome.value,
            duration(measurement.latency),
            measurement.candidate.name,
            cropped(record.task),
        )
    printed.print(table)
    failures = [record for record in records[-limit:] if record.measurement.outcome.failed]
    for record in failures[-3:]:
        reason = record.measurement.error.partition("\n")[0]
        printed.print(f"{record.id}: {reason}\n    again: {shlex.join(record.command)}", soft_wrap=True)
