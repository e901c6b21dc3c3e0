"""``ansorlite run``"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ansorlite.cli import options
from ansorlite.cli.program import Runnable, fixed, load_inputs
from ansorlite.cli.source import load_open
from ansorlite.report.screen import screen
from ansorlite.writing import writing


@click.command("run", cls=options.IntListCommand)
@options.source
@options.database()
@options.target
@options.space
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="An input; those not given are random.")
@options.seed
@click.option("--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Write each output there, as NAME.npy.")
@options.as_json
def command(
    source: str,
    given: options.Given,
    database: Path | None,
    target: str,
    space: str | None,
    inputs: tuple[str, ...],
    seed: int,
    output_dir: Path | None,
    as_json: bool,
) -> None:
    """Run SOURCE once with the best programs known.

    \b
    ansorlite run resnet50.onnx --database tuning.db --input data=x.npy --output-dir out
    """
    files = options.parse_assignments(inputs, "--input data=x.npy")
    workload = load_open(source, given, target)
    program = Runnable.make(fixed(workload, files), database, space)
    arrays = load_inputs(program, files, seed)
    outputs = program(arrays)
    written: dict[str, str] = {}
    if output_dir is not None:
        with writing(output_dir):
            output_dir.mkdir(parents=True, exist_ok=True)
            for name, array in outputs.items():
                path = output_dir / f"{_file_name(name)}.npy"
                np.save(path, array)
                written[name] = str(path)
    if as_json:
        entries = [
            {"name": name, "shape": list(array.shape), "dtype": array.dtype.name, "file": written.get(name)}
            for name, array in outputs.items()
        ]
        options.print_json({"outputs": entries, "random_inputs": sorted(arrays.keys() - files)})
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("output", "shape", "dtype", "file"):
        table.add_column(title)
    for name, array in outputs.items():
        table.add_row(
            name, "x".join(map(str, array.shape)), array.dtype.name, written.get(name, "(not written: no --output-dir)")
        )
    screen().print(table)


def _file_name(name: str) -> str:
    """``name`` without what a file name may not have."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name).lstrip(".") or "output"
