"""What the candidates are of: a small product of matrices."""

from __future__ import annotations

from functools import cache

from ansorlite import te
from ansorlite.target import host
from ansorlite.task import Task


@cache
def task(side: int = 8) -> Task:
    a, b = (te.placeholder((side, side), name=name) for name in "AB")
    k = te.reduce_axis(side, name="k")
    return Task([a, b, te.compute((side, side), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], host(threads=1))
