"""Short ways to write loop functions by hand."""

from collections.abc import Callable

from ansorlite.loops.nodes import Alloc, Buffer, For, Function, Load, LoopKind, Scope, Stmt, Store, block, index
from ansorlite.te.expr import Expr, Var, const
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
