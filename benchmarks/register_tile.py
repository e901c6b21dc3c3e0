"""What register tiles of a product reach at best: ``python -m benchmarks.register_tile``.

Each step of the reduction loads a few vectors of one operand and broadcasts a few elements of the other, from the first cache and
always from the same addresses, and multiplies every pair into an accumulator of its own. Beside that, multiply-adds alone. No
product can have a larger share of the peak than its tile has here: all else that it does comes on top. One thread, in turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import click

from ansorlite.calibration import core
from ansorlite.calibration.loop import Loop
from ansorlite.calibration.stopwatch import Stopwatch, storage
from ansorlite.target import Target, host
from benchmarks.common.tables import Table, show

#: Registers beside the accumulators and the vectors of one operand: a broadcast of the other.
_BESIDE = 1
#: Of tiles that leave more registers free than so many, others are better.
_MOST_FREE = 6
_LARGEST_ROWS = 16


def tiles(registers: int) -> Iterator[tuple[int, int]]:
    """Rows and vectors of the tiles that fill the registers."""
    for vectors in range(1, 7):
        for rows in range(2, _LARGEST_ROWS + 1):
            free = registers - rows * vectors - vectors - _BESIDE
            if 0 <= free <= _MOST_FREE:
                yield rows, vectors


def step(loop: Loop, rows: int, vectors: int) -> int:
    """One step of the reduction; the number of its multiply-adds."""
    columns = [loop.load(loop.vector, number * loop.target.vector_bytes) for number in range(vectors)]
    sums = loop.chains(loop.vector, rows * vectors)
    for row in range(rows):
        element = loop.load("float", vectors * loop.target.vector_bytes + 4 * row)
        first = loop.b.op(f"insertelement {loop.vector} poison, float {element}, i64 0")
        spread = loop.b.op(f"shufflevector {loop.vector} {first}, {loop.vector} poison, <{loop.lanes} x i32> zeroinitializer")
        for column, value in enumerate(columns):
            chain = sums[row * vectors + column]
            loop.then(chain, loop.fma(spread, value, chain))
    return rows * vectors


def alone(loop: Loop) -> int:
    """Multiply-adds of registers, of as many accumulators as a tile has."""
    one, chains = loop.constant(loop.vector), loop.chains(loop.vector, loop.target.vector_registers - _MOST_FREE - 2)
    for chain in chains:
        loop.then(chain, loop.fma(one, one, chain))
    return len(chains)


def shares(target: Target) -> list[tuple[int, int, float]]:
    """Rows, vectors, and the share of the speed of multiply-adds alone, best first."""
    found = list(tiles(target.vector_registers))
    bodies: dict[str, core.Body] = {f"tile_{r}_{v}": partial(step, rows=r, vectors=v) for r, v in found}
    seconds = Stopwatch(target, {"alone": alone, **bodies}, storage(64 * target.vector_bytes)).seconds()
    each = [(r, v, seconds["alone"] / seconds[f"tile_{r}_{v}"]) for r, v in found]
    return sorted(each, key=lambda one: -one[2])


@click.command()
def main() -> None:
    """Print, for each register tile, what it reaches of the speed of multiply-adds alone, data in the first cache."""
    rows = tuple((f"{r} x {v}", f"{(r + v) / (r * v):.2f}", f"{share:.2f}") for r, v, share in shares(host(1)))
    show(Table("register tiles, one thread", ("rows x vectors", "loads a multiply-add", "of multiply-adds alone"), rows))


if __name__ == "__main__":
    main()
