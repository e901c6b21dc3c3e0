"""Copies: nests of loops around one statement that stores what it loads, or what stands in its place beyond a border."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ansorlite.loops.nodes import For, Load, Scope, Stmt, Store
from ansorlite.loops.visit import loads
from ansorlite.te.expr import Const, Expr, Select
from ansorlite.te.index.form import flat
from ansorlite.te.index.ranges import bounds
from ansorlite.te.index.strides import step


@dataclass(frozen=True, eq=False)
class Copy:
    """``store`` in ``loops``.

    Attributes:
        loops: outermost first. An extent may depend on the variables of loops further out.
        load: what is stored.
        bordered: whether another value is stored where there is nothing to load.
    """

    loops: tuple[For, ...]
    store: Store
    load: Load
    bordered: bool

    def read(self, loop: For) -> int:
        """Elements of the source from the first iteration of ``loop`` to the second, all others at their first."""
        return abs(step(flat(self.load, self.load.buffer.strides), loop.var))


def copy_of(stmt: Stmt) -> Copy | None:
    """``stmt`` as a copy into a temporary; ``None`` where it is something else."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    if not loops or not isinstance(stmt, Store):
        return None
    load, bordered = stmt.value, False
    if isinstance(load, Select) and isinstance(load.otherwise, Const):
        load, bordered = load.then, True
    if not isinstance(load, Load):
        return None
    looked_up = any(True for at in load.indices for _ in loads(at))
    endless = any(math.isinf(bounds(loop.extent)[1]) for loop in loops)
    if looked_up or endless or stmt.buffer.scope not in (Scope.GLOBAL, Scope.PREPARED, Scope.LOCAL, Scope.SHARED):
        return None
    return Copy(tuple(loops), stmt, load, bordered)


def most(extent: Expr) -> int:
    """How many iterations there are at most."""
    return int(bounds(extent)[1])
