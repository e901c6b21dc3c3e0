"""``ansorlite export``"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from ansorlite.api.export import export
from ansorlite.cli import options
from ansorlite.cli.program import fixed
from ansorlite.cli.source import load
from ansorlite.errors import ArgumentError
from ansorlite.report.screen import say
from ansorlite.task import Task


@click.command("export", cls=options.IntListCommand)
@options.source
@options.database()
@options.target
@options.space
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The library; its header lies beside it.")
@click.option("--weights", type=click.Choice(["inside", "beside"]), default="inside", show_default=True, help="Of the library.")
@click.option("--name", help="What the C functions' names begin with. [default: the library's name]")
@options.as_json
def command(
    source: str,
    given: options.Given,
    database: Path | None,
    target: str,
    space: str | None,
    output: Path,
    weights: Literal["inside", "beside"],
    name: str | None,
    as_json: bool,
) -> None:
    """Write a model with the best programs known as a shared library for C, and for al.load in Python.

    For a board that the library is to run on, --target says what it is; it takes the programs that were found best there.

    \b
    ansorlite export resnet50.onnx --database tuning.db -o resnet50.so
    ansorlite export resnet50.onnx --target aarch64+dotprod --database tuning.db -o resnet50.so
    """
    model = fixed(load(source, given, target), {})
    if isinstance(model, Task):
        raise ArgumentError(f"{source} is a function in a Python file; only models are exported")
    export(model, output, database, space=space, name=name, weights=weights)
    if as_json:
        options.print_json({"library": str(output), "header": str(output.with_suffix(".h"))})
    else:
        say(f"{source} in {output}, its C functions in {output.with_suffix('.h')}")
