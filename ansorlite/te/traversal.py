"""Walks over expressions: every node once, operands first. Nothing here recurses, so that deep expressions are no problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ansorlite.once import once_for_each
from ansorlite.te.expr import Axis, Expr, Read, Select, Var


def walk(expr: Expr) -> Iterator[Expr]:
    """Every distinct node below and including ``expr``, operands before users."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            children = node.children()
            if children:
                stack.append((node, True))
                stack.extend([(child, False) for child in reversed(children)])
            else:
                yield node


def rewrite(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """``expr`` with ``rule`` applied to every node, operands first; ``None`` keeps the node."""
    return _rebuilt(walk(expr), rule)


def substitute(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """``expr`` with variables replaced."""
    if isinstance(expr, Var):
        return values.get(expr, expr)
    if free_vars(expr).isdisjoint(values):
        return expr
    return _rebuilt(walk(expr), lambda node: values.get(node) if isinstance(node, Var) else None)


def _rebuilt(nodes: Iterable[Expr], rule: Callable[[Expr], Expr | None]) -> Expr:
    """The last of ``nodes``, operands before users, after ``rule``."""
    done: dict[Expr, Expr] = {}
    for node in nodes:
        rebuilt = node
        if children := node.children():
            fresh = tuple([done[child] for child in children])
            if any(a is not b for a, b in zip(children, fresh, strict=True)):
                rebuilt = node.with_children(fresh)
        replacement = rule(rebuilt)
        done[node] = rebuilt if replacement is None else replacement
    return done[node]


@once_for_each
def reads(expr: Expr) -> tuple[Read, ...]:
    """The distinct tensor reads in ``expr``, in order of first appearance."""
    return tuple(node for node in walk(expr) if isinstance(node, Read))


@once_for_each
def free_vars(expr: Expr) -> frozenset[Var]:
    """The variables and axes that ``expr`` depends on."""
    return frozenset(node for node in walk(expr) if isinstance(node, Var))


def reached(expr: Expr, entered: Callable[[Expr], Iterable[Expr]]) -> Iterator[Expr]:
    """Every distinct node reached from ``expr`` through those of its operands that are ``entered``, users before operands."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend(entered(node))


def bare_axes(expr: Expr) -> Iterator[Axis]:
    """The axes whose own value counts, not only the elements read there."""
    nodes = reached(expr, lambda node: () if isinstance(node, Read) else node.children())
    return (node for node in nodes if isinstance(node, Axis))


def executed_reads(expr: Expr) -> tuple[Read, ...]:
    """The reads that are executed wherever ``expr`` is: those reached without entering an arm of a select."""
    nodes = reached(expr, lambda node: (node.cond,) if isinstance(node, Select) else node.children())
    return tuple(node for node in nodes if isinstance(node, Read))
