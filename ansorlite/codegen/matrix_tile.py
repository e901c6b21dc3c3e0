"""Products on matrix units (Intel's AMX): the instructions for what ``loops/matrix_tile.py`` finds.

One configuration of the registers does for a function: to load another one takes longer than some products. Each element is the
sum of the same products as by vectors; those of bfloat16 are added up in another order.

A process has to ask Linux once before it uses such registers, which are large: kernels do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from itertools import product
from typing import Final

from ansorlite.codegen import addresses, control
from ansorlite.codegen.builder import Builder
from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import spread
from ansorlite.loops import matrix_tile
from ansorlite.loops.matrix_tile import MatrixTile, Product
from ansorlite.loops.nodes import Alloc, For, Load
from ansorlite.loops.visit import trips
from ansorlite.te import dtypes
from ansorlite.te.expr import Const
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.ops import BinaryOp

#: The instruction of each dot product, and the one where the words of the columns are its first operand.
INSTRUCTIONS: Final[Mapping[BinaryOp, tuple[str, str]]] = {
    BinaryOp.DOT_BF16: ("tdpbf16ps", "tdpbf16ps"),
    BinaryOp.DOT_U8S8: ("tdpbusd", "tdpbsud"),
    BinaryOp.DOT_U8S7: ("tdpbusd", "tdpbsud"),
    BinaryOp.DOT_S8S8: ("tdpbssd", "tdpbssd"),
    BinaryOp.DOT_U8U8: ("tdpbuud", "tdpbuud"),
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


def match(c: Context, loop: For) -> MatrixTile | None:
    """What matrix units do of ``loop`` here; ``None`` where they cannot."""
    found = matrix_tile.match(loop, c.target)
    return found if found is not None and _runs_here(c, found) else None


def product_in(c: Context, alloc: Alloc) -> Product | None:
    """What matrix units do in the buffer of ``alloc``, so that what is in it before and after is moved by them, too."""
    found = matrix_tile.product_in(alloc, c.target)
    return found if found is not None and _runs_here(c, found.tile) else None


def _runs_here(c: Context, tile: MatrixTile) -> bool:
    """Whether registers are free for it: not in lanes, nor in a function whose registers hold others.

    Functions that a team runs use the registers of its threads, of which that which starts it is one.
    """
    return c.lanes is None and c.guard is None and not c.starts_teams and c.tiles in (None, tile.tiles)


def _form(c: Context, load: Load) -> Affine:
    return flat(load, c.places[load.buffer].strides)


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


def emit(c: Context, tile: MatrixTile, start: Load | Const | None = None, end: Load | None = None) -> None:
    """Write it: accumulators are loaded, the products of a piece of the words are added at a time, and they are stored.

    Args:
        start, end: as :class:`~ansorlite.loops.matrix_tile.Product` has them.
    """
    _configure(c, tile)
    start, end = (tile.total if start is None else start), (tile.total if end is None else end)
    c.registers.write_back(c.places[tile.total.buffer].pointer)
    c.versions[end.buffer] += 1
    tiles = tile.tiles
    outer = list(product(*(range(trips(loop)) for loop in tile.outer)))
    lefts = [(numbers, row) for numbers in outer for row in range(0, trips(tile.row), tiles.rows)]
    columns = range(0, trips(tile.lane), tiles.columns)
    pairs = product(lefts, columns) if tile.holds_left else ((left, column) for column in columns for left in lefts)
    blocks = [_Block(register, *left, column) for register, (left, column) in enumerate(pairs)]
    for block in blocks:
        if isinstance(start, Const):
            c.b.call("void", "llvm.x86.tilezero", ("i8", str(block.register)))
        else:
            _move(c, "tileloadd64", block.register, _place(c, tile, start, block, "0", 0))

    _steps(c, tile, blocks, tile.around)
    for block in blocks:
        _move(c, "tilestored64", block.register, _place(c, tile, end, block, "0", 0))


def release(c: Context) -> None:
    """At the end of a function: what is in its tiles need not be kept any more."""
    if c.tiles is not None:
        c.b.call("void", "llvm.x86.tilerelease")


def _configure(c: Context, tile: MatrixTile) -> None:
    """When the function is entered: the shapes of its registers, by what the first tile in it takes."""
    if c.tiles is not None:
        return
    c.tiles = tiles = tile.tiles
    factors = (tiles.rows, tiles.words), (tiles.words, tiles.columns)
    held, passing = factors if tile.holds_left else reversed(factors)
    shapes = [(tiles.rows, tiles.columns)] * tiles.down * tiles.across + [held] * min(tiles.down, tiles.across) + [passing]
    configure(c.b, "_".join(map(str, ("tiles", *astuple(tiles)))), shapes)


def configure(b: Builder, name: str, shapes: Sequence[tuple[int, int]]) -> None:
    """When the function is entered: its registers have these shapes, each so many rows of so many words.

    Args:
        name: of the configuration in the module.
    """
    if not b.module.has("allow_tiles"):
        b.module.define("allow_tiles", _ALLOW)
        b.module.declare("i64 @syscall(i64, ...)")
    if not b.module.has(name):
        data = _configuration(shapes)
        numbers = ", ".join(f"i8 {number}" for number in data)
        b.module.define(name, f"@{name} = internal constant [{len(data)} x i8] [{numbers}], align 64")
    b.module.declare("void @llvm.x86.ldtilecfg(ptr)")
    b.at_entry("call i8 @allow_tiles()")
    b.do_at_entry(f"call void @llvm.x86.ldtilecfg(ptr @{name})")


def _configuration(shapes: Sequence[tuple[int, int]]) -> bytes:
    """What ``ldtilecfg`` reads: the first palette, bytes of a row and rows of each register."""
    data = bytearray(64)
    data[0] = 1
    for register, (rows, words) in enumerate(shapes):
        data[16 + 2 * register] = 4 * words
        data[48 + register] = rows
    return bytes(data)


def _steps(c: Context, tile: MatrixTile, blocks: Sequence[_Block], around: Sequence[For]) -> None:
    """All accumulators plus all products of the loops ``around`` that over the words, and of that."""
    loop, step = (around[0], 1) if around else (tile.words, tile.tiles.words)
    extent = trips(loop)

    def iteration(counter: str) -> None:
        last = extent - step if counter != "0" else 0
        if not around:
            _step(c, tile, blocks, counter, last)
            return
        with control.bound(c, loop.var, counter, (0, last)):
            _steps(c, tile, blocks, around[1:])

    if extent == step:
        iteration("0")
    else:
        control.counted(c, "0", str(extent), step, True, loop, iteration)


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
        c.b.call("void", f"llvm.x86.{INSTRUCTIONS[tile.op][tile.swapped]}", *operands)


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
