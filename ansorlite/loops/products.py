"""What a matrix unit does, read off the loops that say it.

The body of a :class:`ansorlite.loops.nodes.Multiply` is what each thread of a phase does to the sums that it keeps::

    for i in 2: for j in 4:                                  # tiles of rows, of columns
        for h in 2: for v in 2:                              # what the thread keeps of one
            for o in 2: for p in 8:                          # pieces of steps, and steps
                sums[t, i, j, h, v] += float32(A[...]) * float32(B[...])

Of a tile thread ``t`` keeps rows ``t // 4 % 8 + h * 8`` and columns ``t % 4 * 2 + v``. So ``A`` depends on ``t`` by its warp and
``t // 4 % 8`` alone, ``B`` by its warp and ``t % 4``; which elements the lanes of a warp read together, by whatever lane, is told
by putting in other lanes, and other ``h``, ``v``, ``o`` and ``p``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.loops.nodes import For, Intrinsic, Load, LoopKind, Multiply, Scope, Stmt, Store, index
from ansorlite.loops.visit import trips
from ansorlite.machine.matrix import HELD_ACROSS, HELD_DOWN, LANES_ACROSS, LANES_DOWN, WARP, MatrixUnit
from ansorlite.te.expr import Binary, Cast, Const, Expr, Var
from ansorlite.te.index.form import flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import free_vars, substitute


@dataclass(frozen=True)
class Product:
    """A product of tiles.

    Attributes:
        rows, columns: the loops over tiles along them, with more than one iteration.
        down, across: the variables of what a thread keeps of a tile along the rows, and along the columns.
        piece, step: those of the steps.
        sums: what the thread keeps.
        a, b: the elements of the factors.
    """

    unit: MatrixUnit
    rows: tuple[For, ...]
    columns: tuple[For, ...]
    down: Var
    across: Var
    piece: Var
    step: Var
    sums: Load
    a: Load
    b: Load


def product_of(intrinsic: Intrinsic) -> Product | str:
    """What an intrinsic that is a :class:`Multiply` multiplies; or why its body is no product of tiles."""
    assert isinstance(intrinsic.does, Multiply)
    unit = intrinsic.does.unit
    loops: list[For] = []
    stmt: Stmt = intrinsic.body
    while isinstance(stmt, For):
        if stmt.kind is not LoopKind.SERIAL or not isinstance(stmt.extent, Const):
            return f"the loop over {stmt.var.name} is none of a tile"
        loops.append(stmt)
        stmt = stmt.body
    factors = _factors(stmt, unit)
    if factors is None or len(loops) < 4:
        return f"it adds no products of {unit.factors} to sums of {unit.sums}"
    sums, first, second = factors
    *tiles, down, across, piece, step = loops
    if [trips(loop) for loop in (down, across, piece, step)] != [HELD_DOWN, HELD_ACROSS, 2, unit.piece]:
        return f"the innermost loops are not those of {unit.name}"
    a, b = (first, second) if down.var in _variables(first) else (second, first)
    in_a, in_b = _variables(a), _variables(b)
    steps = {piece.var, step.var}
    if not steps <= in_a & in_b or down.var not in in_a - in_b or across.var not in in_b - in_a or steps & _variables(sums):
        return f"the innermost loops are not those of {unit.name}"
    rows = tuple(loop for loop in tiles if loop.var in in_a)
    columns = tuple(loop for loop in tiles if loop.var in in_b)
    if len(rows) + len(columns) != len(tiles) or set(rows) & set(columns):
        return "a loop over tiles is along rows and columns at once, or along none of them"
    if sums.buffer.scope is not Scope.PRIVATE or not {loop.var for loop in (*tiles, down, across)} <= _variables(sums):
        return "the sums are not what each thread keeps"
    return Product(unit, rows, columns, down.var, across.var, piece.var, step.var, sums, a, b)


def _factors(stmt: Stmt, unit: MatrixUnit) -> tuple[Load, Load, Load] | None:
    """The sums, and both factors, of ``sums += a * b``."""
    if not isinstance(stmt, Store) or not isinstance(stmt.value, Binary) or stmt.value.op is not BinaryOp.ADD:
        return None
    sums, product = stmt.value.a, stmt.value.b
    if not isinstance(sums, Load) or (sums.buffer, sums.indices) != (stmt.buffer, stmt.indices) or sums.dtype != unit.sums:
        return None
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return None
    a, b = (value.a if isinstance(value, Cast) else value for value in (product.a, product.b))
    if not isinstance(a, Load) or not isinstance(b, Load) or {a.dtype, b.dtype} != {unit.factors}:
        return None
    return sums, a, b


def _variables(load: Load) -> frozenset[Expr]:
    return frozenset(var for index in load.indices for var in free_vars(index))


@dataclass(frozen=True)
class Lanes:
    """The number of a thread in parts: of its warp, and of its lane down and across the tiles."""

    warp: Var
    down: Var
    across: Var

    @property
    def thread(self) -> Expr:
        return (self.warp * LANES_DOWN + self.down) * LANES_ACROSS + self.across

    def bind(self, algebra: IndexAlgebra, threads: int) -> None:
        """Tell what they run to, of so many threads."""
        for var, extent in ((self.warp, threads // WARP), (self.down, LANES_DOWN), (self.across, LANES_ACROSS)):
            algebra.bind(var, index(extent))


def offset_by_lanes(load: Load, thread: Var, lanes: Lanes, algebra: IndexAlgebra) -> Expr:
    """Which element of its buffer ``thread`` loads, by the parts of its number; in elements from the first one."""
    return algebra.simplify(substitute(flat(load, load.buffer.strides).expr(), {thread: lanes.thread}))


def lanes_problem(product: Product, thread: Var, threads: int, algebra: IndexAlgebra) -> str | None:
    """Why the threads that run a product are not those of its unit; ``None`` if they are.

    Args:
        thread: their number.
        threads: how many there are.
    """
    if threads % product.unit.threads:
        return f"{threads} threads are no whole groups of {product.unit.threads}"
    lanes = Lanes(Var("warp"), Var("down"), Var("across"))
    lanes.bind(algebra, threads)
    for load, other in ((product.a, lanes.across), (product.b, lanes.down)):
        offset = offset_by_lanes(load, thread, lanes, algebra)
        if other in free_vars(offset):
            return f"lanes that are given the same elements of {load.buffer.name} do not load the same"
    return None
