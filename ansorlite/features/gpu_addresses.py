"""What warps touch, by enumerating the addresses of one program: a part of the slow reference of GPUs' features.

As features have it, all loops but those over threads are at their first iterations, and the first thread's element begins a
sector, and the banks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.reference import StoreCopy, value_of
from ansorlite.loops.nodes import THREADS, Buffer, For, Intrinsic, Load, LoopKind, Multiply, Stmt, Store, statements
from ansorlite.loops.products import Product, product_of
from ansorlite.loops.swizzle import CHUNK
from ansorlite.loops.visit import trips
from ansorlite.machine.gpu import BANKS, SECTOR, WORD
from ansorlite.machine.matrix import WARP
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var

#: Bytes of a row that matrix units are given.
_ROW: Final = 16


def trips_of(copy: StoreCopy, *kinds: LoopKind) -> list[int]:
    """Of the loops of some kinds."""
    return [trip for loop, trip in zip(copy.loops, copy.trips, strict=True) if loop.kind in kinds]


def sectors(copy: StoreCopy, buffer: Buffer, indices: Sequence[Expr]) -> int:
    """Pieces of memory that the first warp's load or store touches."""
    return len({byte // SECTOR for _, byte in _touched(copy, buffer, indices)})


def passes(copy: StoreCopy, buffer: Buffer, indices: Sequence[Expr], nbytes: int) -> int:
    """Over the banks, that the first warp's load or store of ``nbytes`` by each thread takes."""
    wide = next(size for size in (WORD, 2 * WORD, 4 * WORD) if size >= min(nbytes, 4 * WORD))
    pieces = {(number * wide // BANKS, byte // wide) for number, byte in _touched(copy, buffer, indices)}
    deep = Counter((group, piece % (BANKS // wide)) for group, piece in pieces)
    return sum(max(deep[group, bank] for group, bank in deep if group == each) for each in {group for group, _ in deep})


def _touched(copy: StoreCopy, buffer: Buffer, indices: Sequence[Expr]) -> list[tuple[int, int]]:
    """The threads of the first warp that run a statement, each with the byte that its element begins with."""
    thread = np.arange(WARP)
    at = _at_first_threads(copy, WARP)
    there = thread < prod(trips_of(copy, *THREADS))
    for condition in copy.conditions:
        there = there & (value_of(condition, at) != 0)
    # From where the first thread is.
    places = [values - values[0] for values in (np.broadcast_to(value_of(each, at), (WARP,)) for each in indices)]
    if buffer.swizzle > 1:
        chunk = CHUNK // dtypes.size(buffer.dtype)
        turn = places[-2] // max(1, BANKS // CHUNK * chunk // buffer.strides[-2]) % buffer.swizzle
        places[-1] = (places[-1] // chunk ^ turn) * chunk + places[-1] % chunk
    address = sum(place * by for place, by in zip(places, buffer.strides, strict=True)) * dtypes.size(buffer.dtype)
    return [(int(number), int(byte)) for number, byte, one in zip(thread, address + 0 * thread, there, strict=True) if one]


def _at_first_threads(copy: StoreCopy, count: int) -> dict[Var, NDArray[np.int64]]:
    """Of each loop its variable: (count,) of those over threads, else where it begins."""
    left = np.arange(count)
    at: dict[Var, NDArray[np.int64]] = {loop.var: np.zeros((), dtype=np.int64) for loop in copy.loops}
    for loop, trip in zip(reversed(copy.loops), reversed(copy.trips), strict=True):
        if loop.kind in THREADS:
            at[loop.var], left = left % trip, left // trip
    return at


# Matrix units ----------------------------------------------------------------------------------------------------------


def product_in(launch: Stmt, store: Store) -> Product | None:
    """What a matrix unit multiplies, if ``store`` is its statement."""
    for each in statements(launch):
        if isinstance(each, Intrinsic) and isinstance(each.does, Multiply) and store in statements(each.body):
            found = product_of(each)
            assert isinstance(found, Product), found
            return found
    return None


def loops_of(product: Product) -> tuple[Var, ...]:
    """The variables of the loops that are done at a time, in no order: over tiles, and the four within one."""
    tiles = (loop.var for loop in (*product.rows, *product.columns))
    return (*tiles, product.down, product.across, product.piece, product.step)


def given(copy: StoreCopy, product: Product) -> list[tuple[float, float]]:
    """What a matrix unit is given of either factor at a time: words by each thread, and passes over the banks by each warp.

    What threads that run it together would all load is given once. Of 8 rows of 16 bytes each one pass gets those that are in
    banks of their own.
    """
    rows, columns = [loop.var for loop in product.rows], [loop.var for loop in product.columns]
    # Each word of a warp is 8 rows of 16 bytes: of one tile, of one piece, and of the upper or the lower half of its rows.
    return [
        _given(copy, product, product.a, rows, [*rows, product.down, product.piece]),
        _given(copy, product, product.b, columns, [*columns, product.piece]),
    ]


def _given(copy: StoreCopy, product: Product, factor: Load, tiles: Sequence[Var], words: Sequence[Var]) -> tuple[float, float]:
    """As ``given``; ``tiles``, ``words``: the variables of its tiles, and of what is a word of each lane."""
    unit, item = product.unit, dtypes.size(factor.dtype)
    inside = copy.loops[-len(loops_of(product)) :]
    # An axis of threads, then one of each loop.
    at = {
        var: np.reshape(value, value.shape + (1,) * len(inside)) for var, value in _at_first_threads(copy, unit.threads).items()
    }
    for depth, loop in enumerate(inside, start=1):
        at[loop.var] = np.reshape(np.arange(trips(loop)), (-1,) + (1,) * (len(inside) - depth))
    places = [value_of(index, at) * by for index, by in zip(factor.indices, factor.buffer.strides, strict=True)]
    address = np.broadcast_to(sum(places) * item, (unit.threads, *map(trips, inside)))
    # Tiles that are shifted inwards are given anew.
    each = sum(len(np.unique(tile)) for tile in _apart(address, inside, tiles)) * item / (WORD * unit.threads)
    matrices = _apart(address[:WARP], inside, words)
    in_banks = [np.unique((matrix - matrix.min()) // _ROW) % (BANKS // _ROW) for matrix in matrices]
    return each, each * sum(int(np.bincount(banks).max()) for banks in in_banks) / len(in_banks)


def _apart(address: NDArray[np.int64], loops: Sequence[For], variables: Sequence[Var]) -> NDArray[np.int64]:
    """(iterations of ``variables``, all else) of addresses (threads, iterations of each loop)."""
    depths = [depth for depth, loop in enumerate(loops, start=1) if loop.var in variables]
    moved = np.moveaxis(address, depths, range(len(depths)))
    return moved.reshape(prod(moved.shape[: len(depths)]), -1)
