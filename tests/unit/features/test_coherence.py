"""Lines that a thread reads, or fetches ahead, and another one has written."""

from dataclasses import replace

import numpy as np
import pytest

from ansorlite import te
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.features.population import population_facts
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.target import Target
from ansorlite.task import Task
from tests import targets

#: A product of what a stage has computed before, 256 lines.
TRACE = """def schedule(s):
    C = s.stage("C")
    i0, i1 = s.split(C["i"], ({rows}, {rest}))
    j0, j1 = s.split(C["j"], ({columns}, {across}))
    s.reorder({outer}, i1, C["k"], j1)
    s.parallel(({outer}), depth=2)
    s.vectorize(j1, lanes=16)
    B = s.stage("B")
    s.compute_at(B, {at})
    s.parallel((B["i"], B["k"]), depth={depth})
    s.vectorize(B["k"], lanes=16)"""


#: What it takes of lines ahead of its own: at the end of its rows, or of its part of each row, where the next thread's begin.
ROWS, COLUMNS = 2, 128


def misses(rows: int, columns: int, at: str, depth: int, target: Target = targets.WIDE, outer: str = "i0, j0") -> float:
    """How many of these lines the busiest thread of the product reads, and how many lines of the product it fetches ahead."""
    a, w = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="W")
    b = te.compute((64, 64), lambda i, k: te.exp(a[i, k]), name="B")
    k = te.reduce_axis(64, name="k")
    task = Task([a, w, te.compute((64, 64), lambda i, j: te.sum(b[i, k] * w[k, j], axis=k), name="C")], target)
    trace = TRACE.format(rows=rows, rest=64 // rows, columns=columns, across=64 // columns, at=at, depth=depth, outer=outer)
    sketch = sketch_of(task, Candidate(trace))
    names = [facts.name for facts in population_facts(sketch.fold(()))]
    found = extract(sketch, np.zeros((1, 0), np.int64))[0, names.index("C")]
    return float(2.0 ** found[COLUMN["coherence_misses"]] - 1.0)


@pytest.mark.parametrize(
    ("rows", "columns", "at", "depth", "expected"),
    [
        (4, 1, "None", 0, 128 + ROWS),  # one thread has computed all: the other one reads half
        (1, 4, "None", 0, 256 + COLUMNS),  # it reads all
        (4, 1, "None", 1, ROWS),  # each reads what it has computed
        (1, 4, "None", 1, 128 + COLUMNS),  # each reads all, of which it has computed half
        (4, 1, "j0", 0, ROWS),  # each has its own
        (1, 1, "None", 1, 128),  # one thread reads what both have computed
        (1, 1, "None", 0, 0),
    ],
)
def test_lines_that_another_thread_has_written(rows: int, columns: int, at: str, depth: int, expected: int) -> None:
    assert misses(rows, columns, at, depth) == pytest.approx(expected)


def test_threads_share_by_the_outermost_parallel_loop() -> None:
    """Of four by four parts each has eight in a row: half of the rows, or half of the columns and all rows."""
    assert misses(4, 4, "None", 1) == pytest.approx(ROWS)
    assert misses(4, 4, "None", 1, outer="j0, i0") == pytest.approx(128 + COLUMNS)


@pytest.mark.parametrize(("width", "expected"), [(8, 32), (32, 64), (64, 128), (128, 128), (1024, 128), (4096, 128)])
def test_lines_ahead_of_a_part_of_each_row(width: int, expected: int) -> None:
    """Two threads, each of which writes half of every one of 64 rows: two lines a row, or as many as there are."""
    a = te.placeholder((64, width), name="A")
    task = Task([a, te.compute((64, width), lambda i, j: a[i, j] * 2.0, name="B")], targets.WIDE)
    trace = f"""def schedule(s):
    B = s.stage("B")
    j0, j1 = s.split(B["j"], (2, {width // 2}))
    s.reorder(j0, B["i"], j1)
    s.parallel((j0,), depth=1)
    s.vectorize(j1, lanes=1)"""
    found = extract(sketch_of(task, Candidate(trace)), np.zeros((1, 0), np.int64))[0, 0]
    assert 2.0 ** found[COLUMN["coherence_misses"]] - 1.0 == pytest.approx(expected)


def test_one_thread_has_none() -> None:
    assert misses(4, 1, "None", 0, replace(targets.WIDE, threads=1)) == 0
