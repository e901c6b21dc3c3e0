"""Short ways to write loop functions by hand."""

from collections.abc import Callable

from ansorlite.loops.nodes import Buffer, For, Load, LoopKind, Scope, Stmt, Store, index
from ansorlite.te.expr import Expr, Var


def argument(name: str, *shape: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, shape, dtype, Scope.ARGUMENT)


def load(buffer: Buffer, *indices: Expr | int) -> Load:
    return Load(buffer, tuple(i if isinstance(i, Expr) else index(i) for i in indices), buffer.dtype)


def store(buffer: Buffer, indices: tuple[Expr | int, ...], value: Expr) -> Store:
    return Store(buffer, tuple(i if isinstance(i, Expr) else index(i) for i in indices), value)


def loop(name: str, extent: Expr | int, body: Callable[[Var], Stmt], kind: LoopKind = LoopKind.SERIAL, lanes: int = 1) -> For:
    var = Var(name)
    return For(var, extent if isinstance(extent, Expr) else index(extent), kind, body(var), lanes)
