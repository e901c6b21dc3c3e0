"""Fusing loops into one."""

from __future__ import annotations

from ansorlite.loops.nodes import For, LoopKind, Stmt, index
from ansorlite.loops.visit import map_exprs
from ansorlite.te.expr import Expr, Var
from ansorlite.te.traversal import substitute


def parallel_loop(loops: list[tuple[Var, int]], body: Stmt) -> Stmt:
    """Loops fused into one parallel loop."""
    return fused_loop(loops, body, LoopKind.PARALLEL)


def fused_loop(loops: list[tuple[Var, int]], body: Stmt, kind: LoopKind, lanes: int = 1) -> Stmt:
    """Loops fused into one; their variables become its quotients and remainders."""
    if not loops:
        return body
    if len(loops) == 1:
        return For(loops[0][0], index(loops[0][1]), kind, body, lanes)
    fused = Var("_".join(var.name for var, _ in loops))
    total = 1
    for var, trip in reversed(loops):
        value = fused // total if total > 1 else fused
        body = let(var, value % trip if var is not loops[0][0] else value, body)
        total *= trip
    return For(fused, index(total), kind, body, lanes)


def let(var: Var, value: Expr, body: Stmt) -> Stmt:
    """``body`` with ``var`` replaced by ``value``."""
    return map_exprs(body, lambda expr: substitute(expr, {var: value}))
