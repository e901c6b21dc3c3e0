"""Small tasks to measure."""

from __future__ import annotations

from ansorlite import te
from ansorlite.task import Task


def matmul(n: int = 16) -> Task:
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return Task([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def index_out_of_range() -> Task:
    """Reads past the end of ``A``, through an index that only shows when it runs."""
    a = te.placeholder((4,), name="A")
    index = te.placeholder((4,), dtype="int64", name="index")
    return Task([a, index, te.compute((4,), lambda i: a[index[i] + 4], name="B")])
