"""A value that goes through one computation again and again: long bodies, whose operations are told from one another."""

from __future__ import annotations

from collections.abc import Callable

from ansorlite import te
from ansorlite.target import Target
from ansorlite.task import Task


def arithmetic(value: te.Expr) -> te.Expr:
    """Few instructions: loops around them are unrolled."""
    return (value * value + 0.5) / (value + 2.0)


def functions(value: te.Expr) -> te.Expr:
    """Many instructions."""
    return te.power(te.tanh(value) * te.exp(value), 1.5) + te.log(te.sqrt(value) + 1.0)


def chain(link: Callable[[te.Expr], te.Expr], links: int, target: Target) -> Task:
    """Each link uses the one before three times: as a tree it would have 3**links parts."""
    x = te.placeholder((512, 512), name="x")

    def body(i: te.Expr, j: te.Expr) -> te.Expr:
        value = x[i, j]
        for _ in range(links):
            value = link(value)
        return value

    return Task([x, te.compute((512, 512), body, name="o")], target)
