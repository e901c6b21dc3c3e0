"""How many legal programs for a GPU are drawn a second: ``python -m benchmarks.gpu.rates [NAME ...] [--target T] [--json]``.

For each computation of the contract tests, or each named one: of all of its sketches the one of the lowest rate, in CPU seconds
of one thread, with how many of a hundred uniform rows are legal. Writing down what computes the limits, once a sketch, does not
count.
"""

from __future__ import annotations

import json
import time
from typing import Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from tests.contracts.cases import LONG, NAMED

#: Rows that are drawn at a time, and for how long at least.
ROWS: Final = 2048
SECONDS: Final = 0.1
#: Spaces of fewer legal rows than so many times those that are drawn at a time have the same ones again.
_FEW: Final = 10


def rate(sketch: Sketch, seed: int = 0, rows: int = ROWS, seconds: float = SECONDS) -> tuple[float, float]:
    """Legal rows a second, and the share of uniform rows that are legal.

    Those drawn twice at a time count once, but in small spaces.
    """
    space, rng = TileSpace(sketch), np.random.default_rng(seed)
    space.sample(rows, rng)
    uniform = rng.integers(space.sizes, size=(rows, len(space.sizes)), dtype=np.int64)
    legal = float(space.valid(uniform).mean())
    few = legal * space.sizes.prod(dtype=np.float64) < _FEW * rows
    drawn, spent = 0, 0.0
    while spent < seconds:
        start = time.process_time()
        found = space.sample(rows, rng)
        spent += time.process_time() - start
        drawn += rows if few else len(np.unique(found, axis=0))
    return drawn / spent, legal


def slowest(name: str, target: Target) -> tuple[float, float]:
    """Of the sketches of a computation."""
    tensors = (NAMED | LONG)[name]()
    return min(rate(sketch) for sketch in derive(Task(tensors, target)))


@click.command()
@click.argument("names", nargs=-1)
@click.option("--target", default="emulated", show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(names: tuple[str, ...], target: str, as_json: bool) -> None:
    """Print the rates."""
    unknown = [name for name in names if name not in NAMED | LONG]
    if unknown:
        raise click.BadParameter(f"there is no {unknown[0]!r}; there are {', '.join(NAMED | LONG)}")
    found = {name: slowest(name, resolve(target)) for name in names or NAMED | LONG}
    if as_json:
        print(json.dumps({name: {"rate": each, "legal": legal} for name, (each, legal) in found.items()}, indent=2))
        return
    table = Table("computation", "legal rows a second", "legal of 100 uniform rows", box=None, header_style="dim")
    for name, (each, legal) in sorted(found.items(), key=lambda item: item[1]):
        table.add_row(name, f"{each:,.0f}", f"{100 * legal:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
