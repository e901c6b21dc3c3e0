"""Register tiles that a CPU's matrix units update: Intel's AMX, whose eight registers are tiles of up to 16 rows of 64 bytes.

A loop over the words of a reduction that updates a register tile::

    for k in 0..64:
        unrolled i in 0..16:
            vectorized(16) j in 0..32:
                tile[i, j] += dot_u8s8(A[i, k], B[k, j])

is a product of a matrix whose rows lie in memory, and one of words that lie in rows; one instruction multiplies 16 steps of it.
Each direction is cut into equal pieces of at most 16, so that one configuration of the registers does for a function: to load
another one takes longer than some products. The accumulators stay in registers from the first step to the last, of all loops of
the reduction that have nothing else in them, such as those over the taps of a convolution.

What is said here of extents holds for one program and for columns alike: the emitter and the features decide by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ansorlite.columns.arithmetic import equal, minimum, modulo, where
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import Alloc, Block, For, Load, LoopKind, Scope, Stmt, Store
from ansorlite.loops.visit import copied, trips
from ansorlite.machine import amx
from ansorlite.target import Target
from ansorlite.te.expr import Binary, Const, Expr, Var
from ansorlite.te.index.form import flat
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import free_vars


@dataclass(frozen=True)
class Tiles:
    """What matrix registers hold: sums of products of ``rows`` rows of ``words`` words and as many rows of ``columns``.

    Attributes:
        down, across: how many registers of sums there are.
    """

    rows: int
    columns: int
    words: int
    down: int
    across: int


def piece(extent: Number) -> Number:
    """The largest equal pieces of at most the rows of a register."""
    found: Number = 1
    for size in range(2, amx.ROWS + 1):
        found = where(equal(modulo(extent, size), 0), size, found)
    return found


def fits(down: Number, across: Number) -> Number:
    """Whether the registers hold the accumulators, one factor's tiles of a step, and one tile of the other."""
    return down * across + minimum(down, across) + 1 <= amx.REGISTERS


def pays(rows: Number, words: Number) -> Number:
    """Whether a product of tiles with a load of each factor takes no longer than vectors do: so many dot products of them."""
    return rows * words >= (amx.PRODUCT + 2 * amx.LOAD) * amx.VECTORS


@dataclass(frozen=True)
class MatrixTile:
    """A loop over words that updates a register tile, and the loops of the same sums around it.

    Attributes:
        around: loops that have only the next one in them, the last of them ``words``; the outermost first.
        words: the loop, and how many there are.
        outer: unrolled loops around that over the rows.
        row, lane: the loops over rows and columns of the tile.
        total: the accumulators.
        left, right: the words of the rows, and of the columns.
        op: the dot product.
        swapped: whether the words of the columns are its first operand.
    """

    around: tuple[For, ...]
    words: For
    outer: tuple[For, ...]
    row: For
    lane: For
    total: Load
    left: Load
    right: Load
    op: BinaryOp
    swapped: bool

    @cached_property
    def tiles(self) -> Tiles:
        """What its registers hold."""
        rows, columns, words = (int(piece(trips(loop))) for loop in (self.row, self.lane, self.words))
        down = math.prod(map(trips, self.outer)) * (trips(self.row) // rows)
        return Tiles(rows, columns, words, down, trips(self.lane) // columns)

    @property
    def holds_left(self) -> bool:
        """Whether the tiles of a step of the left factor are held, which are fewer, and those of the right one pass."""
        return self.tiles.down <= self.tiles.across


def match(loop: For, target: Target) -> MatrixTile | None:
    """What matrix units do of ``loop``; ``None`` where the target has none, or where they would not be faster."""
    if not target.matrix_dots or loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED) or not isinstance(loop.extent, Const):
        return None
    found = _over_words(loop, target)
    if found is not None or not isinstance(loop.body, For):
        return found
    inner = match(loop.body, target)
    return None if inner is None else replace(inner, around=(loop, *inner.around))


def _over_words(loop: For, target: Target) -> MatrixTile | None:
    """:func:`match` of a loop over words."""
    rows: list[For] = []
    stmt: Stmt = loop.body
    while isinstance(stmt, For) and stmt.kind is LoopKind.UNROLLED and isinstance(stmt.extent, Const):
        rows.append(stmt)
        stmt = stmt.body
    if not rows or not isinstance(stmt, For) or stmt.kind is not LoopKind.VECTORIZED or not isinstance(stmt.extent, Const):
        return None
    found = _product(loop, rows, stmt, target)
    if found is None or not fits(found.tiles.down, found.tiles.across) or not pays(found.tiles.rows, found.tiles.words):
        return None
    return found


@dataclass(frozen=True)
class Product:
    """What is done in a buffer of accumulators that holds them for one product, and for nothing else.

    Attributes:
        before: what sets all accumulators before it, but for what ``start`` stands for.
        start: where the accumulators are copied from; ``None``: they are in the buffer. A constant is what all of them are.
        end: where they are copied to, and then no one reads the buffer; ``None``: they stay in it.
        after: statements behind it, but for what ``end`` stands for.
    """

    before: tuple[Stmt, ...]
    start: Load | Const | None
    tile: MatrixTile
    end: Load | None
    after: tuple[Stmt, ...]


def product_in(alloc: Alloc, target: Target) -> Product | None:
    """What the body of ``alloc`` does in its buffer, if that is a product of matrix units, after one assignment at most."""
    if not target.matrix_dots or alloc.buffer.scope is not Scope.REGISTER or not isinstance(alloc.body, Block):
        return None
    parts = alloc.body.body
    tiles = enumerate(match(part, target) if isinstance(part, For) else None for part in parts[:2])
    found = next(((number, tile) for number, tile in tiles if tile is not None and tile.total.buffer is alloc.buffer), None)
    if found is None:
        return None
    number, tile = found
    before, after = parts[:number], parts[number + 1 :]
    if any(_for_each_accumulator(stmt, tile) is None for stmt in before):
        return None
    start = _start(before[0], tile) if before else None
    end = _end(after[0], tile) if len(after) == 1 else None
    return Product(before if start is None else (), start, tile, end, after if end is None else ())


def _start(stmt: Stmt, tile: MatrixTile) -> Load | Const | None:
    """What ``stmt`` sets all accumulators to: zero, or elements that lie in memory as a tile's do."""
    store = _for_each_accumulator(stmt, tile)
    if store is None or (store.buffer, store.indices) != (tile.total.buffer, tile.total.indices):
        return None
    if isinstance(store.value, Const):
        return store.value if store.value.value == 0 else None
    return store.value if isinstance(store.value, Load) and _lies_as_tiles(store.value, tile) else None


def _end(stmt: Stmt, tile: MatrixTile) -> Load | None:
    """The elements that ``stmt`` copies all accumulators to, if they lie in memory as a tile's do."""
    store = _for_each_accumulator(stmt, tile)
    if store is None or store.streamed or store.value is not tile.total:
        return None
    place = Load(store.buffer, store.indices, store.buffer.dtype)
    return place if _lies_as_tiles(place, tile) else None


def _for_each_accumulator(stmt: Stmt, tile: MatrixTile) -> Store | None:
    """The store that ``stmt`` does for each accumulator, in the variables of the tile's loops."""
    values: dict[Var, Var] = {}
    for loop in (*tile.outer, tile.row, tile.lane):
        if not isinstance(stmt, For) or stmt.kind is not loop.kind or stmt.extent is not loop.extent:
            return None
        values[stmt.var] = loop.var
        stmt = stmt.body
    found = copied(stmt, values)
    return found if isinstance(found, Store) else None


def _lies_as_tiles(load: Load, tile: MatrixTile) -> bool:
    """Whether elements along the lanes are neighbours, and rows evenly apart."""
    steps = _steps(load, (tile.row.var, tile.lane.var, *(loop.var for loop in tile.outer)))
    plain = load.buffer.scope is not Scope.REGISTER and load.dtype == tile.total.dtype
    return plain and steps is not None and steps[tile.lane.var] == 1 and steps[tile.row.var] > 0


def _product(words: For, rows: list[For], lane: For, target: Target) -> MatrixTile | None:
    """The update of accumulators by dot products of what the rows read and what the columns read."""
    update = lane.body
    if not isinstance(update, Store) or update.buffer.scope is not Scope.REGISTER or not isinstance(update.value, Binary):
        return None
    total, dot = update.value.a, update.value.b
    if update.value.op is not BinaryOp.ADD or not isinstance(total, Load) or not isinstance(dot, Binary):
        return None
    if dot.op not in target.matrix_dots or (total.buffer, total.indices) != (update.buffer, update.indices):
        return None
    x, y = dot.a, dot.b
    if not isinstance(x, Load) or not isinstance(y, Load) or Scope.REGISTER in (x.buffer.scope, y.buffer.scope):
        return None
    *outer, row = rows
    for swapped, (left, right) in ((False, (x, y)), (True, (y, x))):
        found = MatrixTile((), words, tuple(outer), row, lane, total, left, right, dot.op, swapped)
        if _is_matrix(found):
            return found
    return None


def _is_matrix(tile: MatrixTile) -> bool:
    """Whether words lie beside each other along the rows of the left factor, and elements along those of the others.

    All rows are multiplied with the same words of the columns.
    """
    word, row, lane = tile.words.var, tile.row.var, tile.lane.var
    left, right, total = (_steps(load, (word, row, lane)) for load in (tile.left, tile.right, tile.total))
    if left is None or right is None or total is None:
        return False
    ordered = left[lane] == right[row] == total[word] == 0 and left[word] == right[lane] == total[lane] == 1
    inside = {row, lane, *(loop.var for loop in tile.outer)}
    literal = all(isinstance(atom, Var) and atom in inside for atom, _ in flat(tile.total, tile.total.buffer.strides).terms)
    shared = all(loop.var not in _variables(tile.right.indices) for loop in tile.outer)
    return ordered and literal and shared and min(left[row], right[word], total[row]) > 0


def _variables(indices: tuple[Expr, ...]) -> frozenset[Var]:
    return frozenset[Var]().union(*map(free_vars, indices))


def _steps(load: Load, variables: tuple[Var, ...]) -> Mapping[Var, int] | None:
    """Elements from one value of each variable to the next; ``None`` where they are not even."""
    form = flat(load, load.buffer.strides)
    if any(not isinstance(atom, Var) and not free_vars(atom).isdisjoint(variables) for atom, _ in form.terms):
        return None
    return {var: form.coefficients.get(var, 0) for var in variables}
