"""Register tiles of dot products on matrix units: Intel's AMX, whose eight registers are tiles of up to 16 rows of 64 bytes.

A loop over the words of a reduction that updates a register tile::

    for k in 0..64:
        unrolled i in 0..16:
            vectorized(16) j in 0..32:
                tile[i, j] += dot_u8s8(A[i, k], B[k, j])

is a product of a matrix whose rows lie in memory, and one of words that lie in rows; one instruction multiplies 16 steps of it.
Each direction is cut into equal pieces of at most 16, so that one configuration of the registers does for a function: to load
another one takes longer than some products. The accumulators stay in registers from the first step to the last. Each element is
the sum of the same products; those of bfloat16 are added up in another order.

A process has to ask Linux once before it uses such registers, which are large: kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import product
from typing import Final

from ansorlite.codegen import addresses, control
from ansorlite.codegen.context import Context, Tiles
from ansorlite.codegen.expressions import spread
from ansorlite.codegen.scope import dependence
from ansorlite.loops.nodes import For, Load, LoopKind, Scope, Stmt, Store
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Var
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.ops import BinaryOp

#: Rows of a register, and words in a row.
_ROWS: Final = 16
#: How many registers there are.
_REGISTERS: Final = 8
#: Cycles of one product of tiles with a load of each factor, and dot products of vectors that begin in a cycle (Intel 64 and
#: IA-32 Architectures Optimization Reference Manual, chapter 20): with fewer of these in it, a product of tiles is no faster.
_CYCLES: Final = 32
_VECTORS_PER_CYCLE: Final = 2

#: The feature that a dot product needs, and its instruction by whether the rows' factor is the first operand.
_INSTRUCTIONS: Final[Mapping[BinaryOp, tuple[str, Mapping[bool, str]]]] = {
    BinaryOp.DOT_BF16: ("amx-bf16", {True: "tdpbf16ps", False: "tdpbf16ps"}),
    BinaryOp.DOT_U8S8: ("amx-int8", {True: "tdpbusd", False: "tdpbsud"}),
    BinaryOp.DOT_U8S7: ("amx-int8", {True: "tdpbusd", False: "tdpbsud"}),
    BinaryOp.DOT_S8S8: ("amx-int8", {True: "tdpbssd", False: "tdpbssd"}),
    BinaryOp.DOT_U8U8: ("amx-int8", {True: "tdpbuud", False: "tdpbuud"}),
}

#: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): once for all threads of the process. What it says is not looked at: where
#: Linux lists AMX the permission is given, and without it the first tile ends the process as an unknown instruction does.
_ALLOW: Final = """define internal i8 @allow_tiles() noinline #0 {
  %known = load atomic i8, ptr @tiles_allowed monotonic, align 1
  %asked = icmp ne i8 %known, 0
  br i1 %asked, label %done, label %ask
ask:
  %answer = call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)
  store atomic i8 1, ptr @tiles_allowed monotonic, align 1
  br label %done
done:
  ret i8 1
}
@tiles_allowed = internal global i8 0"""


@dataclass(frozen=True)
class MatrixTile:
    """A loop over words that updates a register tile.

    Attributes:
        words: the loop, and how many there are.
        outer: unrolled loops around that over the rows.
        row, lane: the loops over rows and columns of the tile.
        total: the accumulators.
        left, right: the words of the rows, and of the columns.
        instruction: of the dot products.
    """

    words: For
    outer: tuple[For, ...]
    row: For
    lane: For
    total: Load
    left: Load
    right: Load
    instruction: str

    @cached_property
    def tiles(self) -> Tiles:
        """What its registers hold."""
        rows, columns, words = (_piece(_trips(loop)) for loop in (self.row, self.lane, self.words))
        down = math.prod(map(_trips, self.outer)) * (_trips(self.row) // rows)
        return Tiles(rows, columns, words, down, _trips(self.lane) // columns)

    @property
    def holds_left(self) -> bool:
        """Whether the tiles of a step of the left factor are held, which are fewer, and those of the right one pass."""
        return self.tiles.down <= self.tiles.across


def match(c: Context, loop: For) -> MatrixTile | None:
    """What matrix units do of ``loop``; ``None`` where the target has none, or where they would not be faster."""
    if "+amx-tile" not in c.target.features.split(",") or c.lanes is not None or c.guard is not None:
        return None
    if c.starts_teams or loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED) or not isinstance(loop.extent, Const):
        return None
    rows: list[For] = []
    stmt: Stmt = loop.body
    while isinstance(stmt, For) and stmt.kind is LoopKind.UNROLLED and isinstance(stmt.extent, Const):
        rows.append(stmt)
        stmt = stmt.body
    if not rows or not isinstance(stmt, For) or stmt.kind is not LoopKind.VECTORIZED or not isinstance(stmt.extent, Const):
        return None
    found = _product(c, loop, rows, stmt)
    if found is None or not _fits(found.tiles) or not _pays(found.tiles):
        return None
    return found if c.tiles in (None, found.tiles) else None


def _product(c: Context, words: For, rows: list[For], lane: For) -> MatrixTile | None:
    """The update of accumulators by dot products of what the rows read and what the columns read."""
    update = lane.body
    if not isinstance(update, Store) or update.buffer.scope is not Scope.REGISTER or not isinstance(update.value, Binary):
        return None
    total, dot = update.value.a, update.value.b
    if update.value.op is not BinaryOp.ADD or not isinstance(total, Load) or not isinstance(dot, Binary):
        return None
    feature, names = _INSTRUCTIONS.get(dot.op, ("", {}))
    if not names or f"+{feature}" not in c.target.features.split(","):
        return None
    if (total.buffer, total.indices) != (update.buffer, update.indices):
        return None
    x, y = dot.a, dot.b
    if not isinstance(x, Load) or not isinstance(y, Load) or c.places[x.buffer].register or c.places[y.buffer].register:
        return None
    *outer, row = rows
    for first, (left, right) in ((True, (x, y)), (False, (y, x))):
        found = MatrixTile(words, tuple(outer), row, lane, total, left, right, names[first])
        if _is_matrix(c, found):
            return found
    return None


def _is_matrix(c: Context, tile: MatrixTile) -> bool:
    """Whether words lie beside each other along the rows of the left factor, and elements along those of the others.

    All rows are multiplied with the same words of the columns.
    """
    word, row, lane = tile.words.var, tile.row.var, tile.lane.var
    left, right, total = (_steps(c, load, (word, row, lane)) for load in (tile.left, tile.right, tile.total))
    if left is None or right is None or total is None:
        return False
    ordered = left[lane] == right[row] == total[word] == 0 and left[word] == right[lane] == total[lane] == 1
    inside = {row, lane, *(loop.var for loop in tile.outer)}
    literal = all(isinstance(atom, Var) and atom in inside for atom, _ in _form(c, tile.total).terms)
    shared = all(loop.var not in _variables(tile.right) for loop in tile.outer)
    return ordered and literal and shared and min(left[row], right[word], total[row]) > 0


def _variables(load: Load) -> frozenset[Var]:
    return frozenset[Var]().union(*(dependence(index).variables for index in load.indices))


def _form(c: Context, load: Load) -> Affine:
    return flat(load, c.places[load.buffer].strides)


def _steps(c: Context, load: Load, variables: tuple[Var, ...]) -> dict[Var, int] | None:
    """Elements from one value of each variable to the next; ``None`` where they are not even."""
    form = _form(c, load)
    if any(not isinstance(atom, Var) and not dependence(atom).variables.isdisjoint(variables) for atom, _ in form.terms):
        return None
    return {var: form.coefficients.get(var, 0) for var in variables}


def _fits(tiles: Tiles) -> bool:
    """Whether the registers hold the accumulators, one factor's tiles of a step, and one tile of the other."""
    return tiles.down * tiles.across + min(tiles.down, tiles.across) + 1 <= _REGISTERS


def _pays(tiles: Tiles) -> bool:
    return tiles.rows * tiles.words >= _CYCLES * _VECTORS_PER_CYCLE


def _piece(extent: int) -> int:
    """The largest equal pieces of at most 16."""
    return next(size for size in range(min(extent, _ROWS), 0, -1) if extent % size == 0)


def _trips(loop: For) -> int:
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


@dataclass(frozen=True)
class _Block:
    """One register of accumulators: its number, and where it begins.

    Attributes:
        outer: iterations of the loops around the rows.
        row, column: the first ones.
    """

    register: int
    outer: tuple[int, ...]
    row: int
    column: int


def emit(c: Context, tile: MatrixTile) -> None:
    """Write it: accumulators are loaded, the products of a piece of the words are added at a time, and they are stored."""
    _configure(c, tile)
    c.registers.write_back(c.places[tile.total.buffer].pointer)
    c.versions[tile.total.buffer] += 1
    tiles = tile.tiles
    outer = list(product(*(range(_trips(loop)) for loop in tile.outer)))
    lefts = [(numbers, row) for numbers in outer for row in range(0, _trips(tile.row), tiles.rows)]
    columns = range(0, _trips(tile.lane), tiles.columns)
    pairs = product(lefts, columns) if tile.holds_left else ((left, column) for column in columns for left in lefts)
    blocks = [_Block(register, *left, column) for register, (left, column) in enumerate(pairs)]
    for block in blocks:
        _move(c, "tileloadd64", block.register, _place(c, tile, tile.total, block, "0", 0))

    def step(word: str, last: int) -> None:
        _step(c, tile, blocks, word, last)

    extent = _trips(tile.words)
    if extent == tiles.words:
        step("0", 0)
    else:
        control.counted(c, "0", str(extent), tiles.words, True, tile.words, lambda counter: step(counter, extent - tiles.words))
    for block in blocks:
        _move(c, "tilestored64", block.register, _place(c, tile, tile.total, block, "0", 0))


def release(c: Context) -> None:
    """At the end of a function: what is in its tiles need not be kept any more."""
    if c.tiles is not None:
        c.b.call("void", "llvm.x86.tilerelease")


def _configure(c: Context, tile: MatrixTile) -> None:
    """When the function is entered: the shapes of its registers, by what the first tile in it takes."""
    if c.tiles is not None:
        return
    c.tiles = tiles = tile.tiles
    module = c.b.module
    if not module.has("allow_tiles"):
        module.define("allow_tiles", _ALLOW)
        module.declare("i64 @syscall(i64, ...)")
    factors = (tiles.rows, tiles.words), (tiles.words, tiles.columns)
    held, passing = factors if tile.holds_left else reversed(factors)
    shapes = [(tiles.rows, tiles.columns)] * tiles.down * tiles.across + [held] * min(tiles.down, tiles.across) + [passing]
    name, data = "_".join(map(str, ("tiles", *astuple(tiles)))), _configuration(shapes)
    if not module.has(name):
        numbers = ", ".join(f"i8 {number}" for number in data)
        module.define(name, f"@{name} = internal constant [{len(data)} x i8] [{numbers}], align 64")
    module.declare("void @llvm.x86.ldtilecfg(ptr)")
    c.b.at_entry("call i8 @allow_tiles()")
    c.b.do_at_entry(f"call void @llvm.x86.ldtilecfg(ptr @{name})")


def _configuration(shapes: Sequence[tuple[int, int]]) -> bytes:
    """What ``ldtilecfg`` reads: the first palette, bytes of a row and rows of each register."""
    data = bytearray(64)
    data[0] = 1
    for register, (rows, words) in enumerate(shapes):
        data[16 + 2 * register] = 4 * words
        data[48 + register] = rows
    return bytes(data)


def _step(c: Context, tile: MatrixTile, blocks: Sequence[_Block], word: str, last: int) -> None:
    """All accumulators plus the products of a piece of the words that begins at ``word``, which is at most ``last``.

    The factor that takes fewer registers is loaded whole; of the other one, a tile at a time.
    """
    held, passing = (tile.left, tile.right) if tile.holds_left else (tile.right, tile.left)
    first = len(blocks)
    streamed = first + min(tile.tiles.down, tile.tiles.across)
    registers: dict[tuple[object, int], int] = {}
    latest: tuple[object, int] | None = None
    for block in sorted(blocks, key=lambda each: (_key(tile, passing, each), each.register)):
        kept = _key(tile, held, block)
        if kept not in registers:
            registers[kept] = first + len(registers)
            _move(c, "tileloadd64", registers[kept], _place(c, tile, held, block, word, last))
        if _key(tile, passing, block) != latest:
            latest = _key(tile, passing, block)
            _move(c, "tileloadd64", streamed, _place(c, tile, passing, block, word, last))
        left, right = (registers[kept], streamed) if held is tile.left else (streamed, registers[kept])
        operands = (("i8", str(number)) for number in (block.register, left, right))
        c.b.call("void", f"llvm.x86.{tile.instruction}", *operands)


def _key(tile: MatrixTile, load: Load, block: _Block) -> tuple[tuple[int, ...], int]:
    """Equal for blocks that read one tile of a factor."""
    return (block.outer, block.row) if load is tile.left else ((), block.column)


def _move(c: Context, name: str, register: int, place: tuple[tuple[str, str], tuple[str, str]]) -> None:
    c.b.call("void", f"llvm.x86.{name}", ("i8", str(register)), *place)


def _place(
    c: Context, tile: MatrixTile, load: Load, block: _Block, word: str, last: int
) -> tuple[tuple[str, str], tuple[str, str]]:
    """The address of the first word of a tile, and bytes from one of its rows to the next."""
    form, place = _form(c, load), c.places[load.buffer]
    down = tile.words.var if load is tile.right else tile.row.var
    outer = zip((loop.var for loop in tile.outer), block.outer, strict=True)
    with ExitStack() as stack:
        stack.enter_context(control.bound(c, tile.words.var, word, (0, last)))
        for var, number in (*outer, (tile.row.var, block.row), (tile.lane.var, block.column)):
            stack.enter_context(control.bound(c, var, str(number), (number, number)))
        stack.enter_context(c.scope.layer(statement=True))
        at = spread(c, form)
        pointer, _ = addresses.base(c, place, load.dtype, at.terms)
        pointer = addresses.element(c, pointer, load.dtype, at.constant)
    return ("ptr", pointer), ("i64", str(form.coefficients[down] * dtypes.size(load.dtype)))
