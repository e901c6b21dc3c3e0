"""What straight-line code loads: what the features say, beside what LLVM makes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite import te
from ansorlite.codegen import assembly
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.platforms import build
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import Target
from ansorlite.task import Task
from tests import targets

#: A vector that is loaded, not from the stack, to be moved to a register or multiplied.
LOADED: Final = re.compile(r"^\s+v(?:movups|fmadd\w+)\s+\w*\(%r(?!sp)[^)]*\), .*%zmm", re.MULTILINE)


def taps(rows: int, down: bool, length: int = 64, stride: int = 1, dilation: int = 1) -> Sketch:
    """Three taps over rows of 32 elements, ``down`` columns or along the rows; tiles are so many ``rows`` by one vector."""
    shape = (59 * stride + 2 * dilation + 1, length) if down else (60, length)
    a, w = te.placeholder(shape, name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis(3, name="r")

    def element(y: te.Expr, x: te.Expr) -> te.Expr:
        return te.sum((a[stride * y + dilation * r, x] if down else a[y, x + r]) * w[r], axis=r)

    task = Task([a, w, te.compute((60, 32), element, name="C")], replace(targets.WIDE, threads=1))
    return sketch_of(
        task,
        Candidate(f"""def schedule(s):
    C = s.stage("C")
    y0, y1 = s.split(C["y"], ({60 // rows}, {rows}))
    x0, x1 = s.split(C["x"], (2, 16))
    s.reorder(y0, x0, C["r"], y1, x1)
    s.vectorize(x1, lanes=16)
    s.unroll((C["r"], y1, x1), max_steps=512)"""),
    )


def feature(sketch: Sketch, name: str) -> float:
    return float(np.exp2(extract(sketch, np.zeros((1, 0), np.int64))[0, 0, COLUMN[name]]) - 1)


@pytest.mark.parametrize(
    ("rows", "down", "stride", "dilation", "expected"),
    [
        (2, True, 1, 1, 4),  # four rows, of which two outputs read three each
        (6, True, 1, 1, 8),
        (30, True, 1, 1, 90),  # beside 30 accumulators no register is left for a row to wait in
        (6, False, 1, 1, 18),  # vectors that are one element apart are different ones
        (15, True, 2, 1, 31),  # the third tap reads what the first one of the next row did
        (20, True, 2, 1, 60),  # beside 20 accumulators not all registers are left that 19 rows wait in for two steps
        (6, True, 3, 1, 18),  # nothing is read twice
        (6, True, 2, 2, 8),  # as without either: every other row is read
        (6, True, 1, 2, 10),
    ],
)
def test_what_taps_share_is_loaded_once_where_registers_are_left(
    rows: int, down: bool, stride: int, dilation: int, expected: int
) -> None:
    sketch = taps(rows, down, stride=stride, dilation=dilation)
    assert feature(sketch, "vector_loads") == pytest.approx(expected)
    code = assembly(build(sketch.lower(()), sketch.target), sketch.target)
    assert len(LOADED.findall(code)) == expected


@pytest.mark.parametrize(
    ("down", "length", "crossing"),
    [
        (True, 64, 0.0),  # rows begin where lines do
        (True, 50, 1.0),  # they do not
        (False, 64, 1.0),  # taps begin one element apart
    ],
)
def test_vectors_that_begin_anywhere_cross_lines(down: bool, length: int, crossing: float) -> None:
    sketch = taps(6, down, length)
    assert feature(sketch, "crossing_loads") == pytest.approx(crossing * feature(sketch, "vector_loads"))


def touched(target: Target, depth: int) -> tuple[float, float]:
    """Bytes that a program of 4096 elements touches, and those of its busiest thread."""
    a = te.placeholder((64, 64), name="A")
    task = Task([a, te.compute((64, 64), lambda i, j: a[i, j] + 1, name="C")], target)
    trace = f'def schedule(s):\n    C = s.stage("C")\n    s.parallel((C["i"],), depth={depth})\n    s.vectorize(C["j"], lanes=16)'
    sketch = sketch_of(task, Candidate(trace))
    return feature(sketch, "bytes"), feature(sketch, "thread_bytes")


@pytest.mark.parametrize(
    ("constant", "packed", "axis", "share"),
    [
        (False, False, "i", 0.0),
        (True, False, "i", 1.0),  # each thread reads all weights
        (True, False, "j", 0.5),
        (True, True, "i", 1.0),
        (True, True, "j", 0.5),
    ],
)
def test_what_a_thread_reads_of_constants(constant: bool, packed: bool, axis: str, share: float) -> None:
    a, w = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="W", constant=constant)
    k = te.reduce_axis(64, "k")
    product = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * w[k, j], k), name="C")
    other = "j" if axis == "i" else "i"
    lines = ['C = s.stage("C")', f's.reorder(C["{axis}"], C["{other}"], C["k"])', f's.parallel((C["{axis}"],), depth=1)']
    if packed:
        lines.append('s.cache_read(C, "W", at=None, name="W_packed")')
    trace = "\n    ".join(["def schedule(s):", *lines])
    sketch = sketch_of(Task([a, w, product], replace(targets.WIDE, threads=2)), Candidate(trace))
    assert feature(sketch, "constant_bytes") == pytest.approx(share * 4 * 64 * 64)


@pytest.mark.parametrize(("threads", "depth", "share"), [(1, 1, 1.0), (2, 1, 0.5), (2, 0, 1.0), (3, 1, 22 / 64)])
def test_a_thread_touches_its_share(threads: int, depth: int, share: float) -> None:
    all_, own = touched(replace(targets.WIDE, threads=threads), depth)
    assert all_ == pytest.approx(2 * 4 * 64 * 64)
    assert own == pytest.approx(share * all_)
