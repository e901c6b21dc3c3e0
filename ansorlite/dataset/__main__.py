"""``python -m ansorlite.dataset``: a data set from databases of tuning records.

    python -m ansorlite.dataset tuning.db -o corpus

Each task becomes one file of arrays: what its programs took, and what cost models see of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from ansorlite.dataset.corpus import write_corpus
from ansorlite.dataset.recorded import entries_of
from ansorlite.errors import AnsorliteError
from ansorlite.records import Database
from ansorlite.target import host, resolve


@click.command()
@click.argument("databases", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder of the data set."
)
@click.option(
    "--target", "targets", multiple=True, help="Whose records to take; may be given several times.  [default: this machine's]"
)
@click.option("--origin", default="", help="Where the tasks are from: the name of a network, for one.")
def main(databases: tuple[Path, ...], output: Path, targets: tuple[str, ...], origin: str) -> None:
    """Make a data set of the records in DATABASES."""
    try:
        cores = range(1, (os.cpu_count() or 1) + 1)
        chosen = [resolve(target) for target in targets] or [host(threads) for threads in cores]
        entries = []
        for path in databases:
            with Database(path, create=False) as database:
                entries += list(entries_of(database, chosen, origin))
                database.warn()
        if not entries:
            raise click.ClickException(
                f"no program that ran on {', '.join(target.key for target in chosen)} is in {', '.join(map(str, databases))}; "
                "name the records' target with --target"
            )
        write_corpus(entries, output)
    except AnsorliteError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{output}: {sum(map(len, entries))} programs of {len(entries)} tasks", err=True)


if __name__ == "__main__":
    main(prog_name="python -m ansorlite.dataset")
