"""Small tasks to measure."""

from __future__ import annotations

from ansorlite import te
from ansorlite.task import Task


def matmul(n: int = 16) -> Task:
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return Task([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])
