"""``ansorlite pack``"""

from __future__ import annotations

from pathlib import Path

import click

from ansorlite.cli import options
from ansorlite.cli.source import load
from ansorlite.records.database import Database
from ansorlite.records.packs import write_pack
from ansorlite.report.screen import say
from ansorlite.report.text import plural
from ansorlite.tuner.workload import parts_of, tasks_of


@click.command("pack", cls=options.IntListCommand)
@click.argument("database", type=click.Path(dir_okay=False, path_type=Path))
@options.source
@options.target
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The pack.")
@options.as_json
def command(
    database: Path,
    source: str,
    given: options.Given,
    target: str,
    output: Path,
    as_json: bool,
) -> None:
    """Write the best programs of SOURCE that DATABASE knows to a file for other machines: no weights, no code.

    There, al.compile(model, database="resnet50.pack") gives each of them a timed turn against the default program.

    \b
    ansorlite pack tuning.db resnet50.onnx -o resnet50.pack
    """
    workload = load(source, given, target)
    tasks = [task for task, _ in tasks_of(parts_of(workload))]
    with Database(database, create=False) as records:
        found = write_pack([records], tasks, output, Path(source).name)
        records.warn()
    if as_json:
        options.print_json({"pack": str(output), "tasks": len(tasks), "targets": found})
        return
    for key, count in found.items():
        say(f"{count} of {plural(len(tasks), 'task')} on {key}")
    say(f"in {output}")
