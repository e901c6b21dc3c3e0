"""Walking and rebuilding statements: what passes are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    Fold,
    For,
    If,
    Intrinsic,
    Load,
    Prefetch,
    Stmt,
    Store,
    block,
    statements,
)
from ansorlite.te.expr import Const, Expr, Var
from ansorlite.te.index.ranges import Interval, bounds
from ansorlite.te.traversal import rewrite, walk

#: Between what values variables lie.
Ranges: TypeAlias = Mapping[Var, Interval]

_EMPTY: Final[Ranges] = {}


def map_stmt(stmt: Stmt, fn: Callable[[Stmt], Stmt | None]) -> Stmt:
    """``stmt`` with ``fn`` applied to every statement, sub-statements first; ``None`` keeps it.

    An empty ``block()`` removes a statement from the block it is in. What does not change stays the same object.
    """
    rebuilt = _rebuilt(stmt, lambda child: map_stmt(child, fn))
    replacement = fn(rebuilt)
    return rebuilt if replacement is None else replacement


def map_outermost(stmt: Stmt, fn: Callable[[Stmt], Stmt | None]) -> Stmt:
    """As :func:`map_stmt`, but a statement before its sub-statements; within what ``fn`` replaces, nothing else is replaced."""
    replacement = fn(stmt)
    return _rebuilt(stmt, lambda child: map_outermost(child, fn)) if replacement is None else replacement


def map_in_ranges(stmt: Stmt, fn: Callable[[Stmt, Ranges], Stmt | None], ranges: Ranges = _EMPTY) -> Stmt:
    """As :func:`map_outermost`; ``fn`` is also told between what values the variables of the loops around a statement lie."""
    replacement = fn(stmt, ranges)
    if replacement is not None:
        return replacement
    inside = within(stmt, ranges) if isinstance(stmt, For) else ranges
    return _rebuilt(stmt, lambda child: map_in_ranges(child, fn, inside))


def within(loop: For, ranges: Ranges) -> Ranges:
    """``ranges``, and that of the loop's own variable."""
    return {**ranges, loop.var: (0, limits(loop.extent, ranges)[1] - 1)}


def trips(loop: For) -> int:
    """Iterations of a loop of a known extent."""
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def limits(extent: Expr, ranges: Ranges) -> Interval:
    """The bounds of an extent; nearly all are literals."""
    return (extent.value, extent.value) if isinstance(extent, Const) else bounds(extent, ranges)


def _rebuilt(stmt: Stmt, fn: Callable[[Stmt], Stmt]) -> Stmt:
    """``stmt`` with ``fn`` applied to each statement right below; the same object where that changes nothing."""
    match stmt:
        case Block(body):
            children = tuple(map(fn, body))
            return stmt if _same(children, body) else block(*children)
        case For():
            inner = fn(stmt.body)
            return stmt if inner is stmt.body else For(stmt.var, stmt.extent, stmt.kind, inner, stmt.lanes)
        case If(_, body):
            inner = fn(body)
            return stmt if inner is body else replace(stmt, body=inner)
        case Alloc(buffer, body):
            inner = fn(body)
            return stmt if inner is body else Alloc(buffer, inner)
        case Intrinsic(does, body):
            inner = fn(body)
            return stmt if inner is body else Intrinsic(does, inner)
        case FetchGroup(body):
            inner = fn(body)
            return stmt if inner is body else FetchGroup(inner)
    return stmt


def map_exprs(stmt: Stmt, fn: Callable[[Expr], Expr]) -> Stmt:
    """``stmt`` with every whole expression (extents, conditions, indices, values) replaced by ``fn`` of it."""

    def rule(node: Stmt) -> Stmt | None:
        match node:
            case For(var, extent, kind, body, lanes):
                fresh = fn(extent)
                return None if fresh is extent else For(var, fresh, kind, body, lanes)
            case If(cond, body):
                fresh = fn(cond)
                return None if fresh is cond else replace(node, cond=fresh)
            case Store(_, indices, value):
                new_indices, new_value = tuple(map(fn, indices)), fn(value)
                same = new_value is value and _same(new_indices, indices)
                return None if same else replace(node, indices=new_indices, value=new_value)
            case Prefetch(load):
                fresh = fn(load)
                assert isinstance(fresh, Load)
                return None if fresh is load else Prefetch(fresh, node.stage)
        return None

    return map_stmt(stmt, rule)


def copied(stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """A copy of ``stmt`` to stand beside it: with loop variables and temporaries of its own, and other variables replaced."""
    return _copied(stmt, dict(values), {})


def _copied(stmt: Stmt, values: dict[Var, Expr], buffers: dict[Buffer, Buffer]) -> Stmt:
    def fresh(expr: Expr) -> Expr:
        def rule(node: Expr) -> Expr | None:
            if isinstance(node, Load) and node.buffer in buffers:
                return Load(buffers[node.buffer], node.indices, node.dtype)
            return values.get(node) if isinstance(node, Var) else None

        return rewrite(expr, rule)

    match stmt:
        case Block(body):
            return block(*(_copied(child, values, buffers) for child in body))
        case If(cond, body):
            return replace(stmt, cond=fresh(cond), body=_copied(body, values, buffers))
        case Alloc(buffer, body):
            own = replace(buffer)
            return Alloc(own, _copied(body, values, {**buffers, buffer: own}))
        case For(var, extent, kind, body, lanes):
            mine = Var(var.name, var.dtype)
            return For(mine, fresh(extent), kind, _copied(body, {**values, var: mine}, buffers), lanes)
        case Store(buffer, indices, value):
            return replace(stmt, buffer=buffers.get(buffer, buffer), indices=tuple(map(fresh, indices)), value=fresh(value))
        case Prefetch(load):
            other = fresh(load)
            assert isinstance(other, Load)
            return Prefetch(other, stmt.stage)
        case Intrinsic(Fold() as does, body):
            source, result = (buffers.get(buffer, buffer) for buffer in (does.source, does.result))
            return Intrinsic(replace(does, source=source, result=result), _copied(body, values, buffers))
        case Intrinsic(does, body):
            return Intrinsic(does, _copied(body, values, buffers))
        case FetchGroup(body):
            return FetchGroup(_copied(body, values, buffers))
        case Await():
            return stmt
    raise TypeError(f"not a statement of the loop IR: {stmt!r}")


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The whole expressions of this statement itself, not of those below it."""
    match stmt:
        case For():
            return (stmt.extent,)
        case If(cond, _):
            return (cond,)
        case Store():
            return (*stmt.indices, stmt.value)
        case Prefetch(load):
            return (load,)
        case _:
            return ()


def loads(what: Stmt | Expr) -> Iterator[Load]:
    """Every load in a statement and below, or in an expression; one that is used in two statements comes twice."""
    roots = (what,) if isinstance(what, Expr) else (expr for stmt in statements(what) for expr in expressions(stmt))
    for root in roots:
        yield from (node for node in walk(root) if isinstance(node, Load))


def stores(stmt: Stmt) -> Iterator[Store]:
    """Every store in a statement and below, in program order."""
    return (node for node in statements(stmt) if isinstance(node, Store))


def _same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))
