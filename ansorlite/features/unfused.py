"""Fused parallel loops as the loops that they were fused of, for the reference.

A thread takes iterations in a row, so what is read again from one iteration of an outer part to the next is a matter of caches,
as with any two loops.
"""

from __future__ import annotations

from itertools import pairwise

from ansorlite.loops.nodes import For, LoopKind, Stmt, index
from ansorlite.loops.visit import map_exprs, map_stmt, trips
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.index.form import division
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import substitute, walk


def unfused(stmt: Stmt) -> Stmt:
    """``stmt`` with each parallel loop as those of which its variable has the quotients and remainders."""
    return map_stmt(stmt, _parts)


def _parts(stmt: Stmt) -> Stmt | None:
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.PARALLEL or not isinstance(stmt.extent, Const):
        return None
    sizes = _sizes(stmt)
    if len(sizes) <= 2 or any(size % inner for size, inner in pairwise(sizes)):
        return None
    loops = [(Var(f"{stmt.var.name}_{number}"), size // inner) for number, (size, inner) in enumerate(pairwise(sizes))]
    value: Expr = index(0)
    for var, trip in loops:
        value = value * trip + var
    body = map_exprs(stmt.body, lambda expr: substitute(expr, {stmt.var: value}))
    for var, trip in reversed(loops):
        body = For(var, index(trip), LoopKind.PARALLEL, body)
    return body


def _sizes(loop: For) -> list[int]:
    """How many iterations in a row are one of a part, from those of the whole loop to 1.

    Where the variable itself is used there are no parts. A remainder of a quotient is that of a part in the middle, or one that
    the computation itself takes: then it may fit no parts.
    """
    quotients, middles = {1, trips(loop)}, set[int]()
    whole = False

    def collect(expr: Expr) -> Expr:
        nonlocal whole
        whole = whole or expr is loop.var
        for node in walk(expr):
            divided = division(node)
            if divided is None:
                whole = whole or any(child is loop.var for child in node.children())
                continue
            op, dividend, divisor = divided
            inner = division(dividend)
            if dividend is loop.var:
                quotients.add(divisor)
            elif inner is not None and inner[:2] == (BinaryOp.FLOORDIV, loop.var) and op is BinaryOp.MOD:
                middles.add(inner[2] * divisor)
        return expr

    map_exprs(loop.body, collect)
    if whole:
        return [trips(loop), 1]
    for middle in sorted(middles):
        if all(max(middle, size) % min(middle, size) == 0 for size in quotients):
            quotients.add(middle)
    return sorted(quotients, reverse=True)
