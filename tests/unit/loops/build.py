"""Short ways to write loop functions by hand."""

from collections.abc import Callable

from ansorlite.loops.nodes import (
    Alloc,
    Buffer,
    For,
    Function,
    Intrinsic,
    Load,
    LoopKind,
    Multiply,
    Role,
    Scope,
    Stmt,
    Store,
    block,
    index,
)
from ansorlite.machine.matrix import MatrixUnit
from ansorlite.te.expr import Expr, Var, cast, const
from ansorlite.te.functions import minimum


def argument(name: str, *shape: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, shape, dtype, Scope.ARGUMENT)


def load(buffer: Buffer, *indices: Expr | int) -> Load:
    return Load(buffer, tuple(i if isinstance(i, Expr) else index(i) for i in indices), buffer.dtype)


def store(buffer: Buffer, indices: tuple[Expr | int, ...], value: Expr) -> Store:
    return Store(buffer, tuple(i if isinstance(i, Expr) else index(i) for i in indices), value)


def loop(name: str, extent: Expr | int, body: Callable[[Var], Stmt], kind: LoopKind = LoopKind.SERIAL, lanes: int = 1) -> For:
    var = Var(name)
    return For(var, extent if isinstance(extent, Expr) else index(extent), kind, body(var), lanes)


def over_tile(rows: int, columns: int, lanes: int, body: Callable[[Var, Var], Stmt]) -> For:
    """``body`` for each element of a register tile: rows are written out, columns are in vectors."""
    return loop("i", rows, lambda i: loop("j", columns, lambda j: body(i, j), LoopKind.VECTORIZED, lanes), LoopKind.UNROLLED)


def summed_tile(c: Buffer, lanes: int, sums: Callable[[Buffer], Stmt], *at: Var) -> Alloc:
    """A register tile of all of ``c``, or of ``c[at]``: cleared, updated by ``sums``, and moved there."""
    rows, columns = c.shape[len(at) :]
    tile = Buffer("tile", (rows, columns), c.dtype, Scope.REGISTER)
    clear = over_tile(rows, columns, lanes, lambda i, j: Store(tile, (i, j), const(0, c.dtype), c.name, Role.INIT))
    move = over_tile(rows, columns, lanes, lambda i, j: Store(c, (*at, i, j), load(tile, i, j), c.name, Role.MOVE))
    return Alloc(tile, block(clear, sums(tile), move))


def add(tile: Buffer, i: Var, j: Var, term: Expr) -> Store:
    """``tile[i, j] += term``."""
    return Store(tile, (i, j), load(tile, i, j) + term, role=Role.UPDATE)


def tiled_matmul(n: int, m: int, k: int, tile: int) -> Function:
    """Rows in parallel, a register tile of ``tile`` columns, the last one shorter."""
    a, b, c = argument("A", n, k), argument("B", k, m), argument("C", n, m)
    acc = Buffer("acc", (tile,), "float32", Scope.REGISTER)

    def columns(i: Var, j0: Var) -> Stmt:
        width = minimum(index(tile), index(m) - j0 * tile)
        clear = loop("j1", tile, lambda j: store(acc, (j,), const(0.0, "float32")), LoopKind.VECTORIZED, 4)
        update = loop(
            "r",
            k,
            lambda r: loop(
                "j2",
                width,
                lambda j: store(acc, (j,), load(acc, j) + load(a, i, r) * load(b, r, j0 * tile + j)),
                LoopKind.VECTORIZED,
                4,
            ),
        )
        move = loop("j3", width, lambda j: store(c, (i, j0 * tile + j), load(acc, j)), LoopKind.VECTORIZED, 4)
        return Alloc(acc, block(clear, update, move))

    body = loop("i", n, lambda i: loop("j0", -(-m // tile), lambda j0: columns(i, j0)), LoopKind.PARALLEL)
    return Function("matmul", (a, b, c), 1, body)


def tile_product(
    unit: MatrixUnit,
    threads: int = 32,
    row: Callable[[Var], Expr] = lambda t: t // 4 % 8,
    column: Callable[[Var], Expr] = lambda t: t % 4,
) -> Function:
    """``C = A @ B`` of one tile for each warp, from memory: 16 rows, all of ``A`` under one another, by 8 columns.

    Args:
        row, column: where a thread stands among its tile's rows, and pairs of columns.
    """
    warps = max(1, threads // 32)
    a = argument("A", 16 * warps, unit.steps, dtype=unit.factors)
    b = argument("B", unit.steps, 8, dtype=unit.factors)
    c = argument("C", 16 * warps, 8, dtype=unit.sums)
    sums = Buffer("sums", (threads, 2, 2), unit.sums, Scope.PRIVATE)

    def held(body: Callable[[Var, Var], Stmt]) -> Stmt:
        return loop("h", 2, lambda h: loop("v", 2, lambda v: body(h, v)))

    def step(t: Var, h: Var, v: Var, o: Var, p: Var) -> Stmt:
        k = o * unit.piece + p
        left, right = load(a, t // 32 * 16 + h * 8 + row(t), k), load(b, k, column(t) * 2 + v)
        return store(sums, (t, h, v), load(sums, t, h, v) + cast(left, unit.sums) * cast(right, unit.sums))

    def thread(t: Var) -> Stmt:
        zero = held(lambda h, v: store(sums, (t, h, v), const(0, unit.sums)))
        steps = held(lambda h, v: loop("o", 2, lambda o: loop("p", unit.piece, lambda p: step(t, h, v, o, p))))
        out = held(lambda h, v: store(c, (t // 32 * 16 + h * 8 + row(t), column(t) * 2 + v), load(sums, t, h, v)))
        return block(zero, Intrinsic(Multiply(unit), steps), out)

    body = loop("b", 1, lambda _: Alloc(sums, loop("t", threads, thread, LoopKind.THREAD)), LoopKind.BLOCK)
    return Function("tile_product", (a, b, c), 1, body)
