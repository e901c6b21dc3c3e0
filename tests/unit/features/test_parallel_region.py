"""What each statement pays of entering and leaving parallel loops."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.features.population import population_facts
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.task import Task
from tests import targets

TRACE = """def schedule(s):
    C = s.stage("C")
    s.parallel((C["i"],), depth={depth})
    B = s.stage("B")
    s.compute_at(B, {at})
    s.parallel((B["i"],), depth={of_b})"""


@pytest.mark.parametrize(
    ("at", "depth", "of_b", "expected"),
    [
        ('C["i"]', 1, 0, [0.5, 0.5]),  # one loop of two statements
        ("None", 1, 1, [1, 1]),  # two loops
        ("None", 1, 0, [0, 1]),  # the first runs on one thread
        ("None", 0, 0, [0, 0]),
    ],
)
def test_statements_of_one_parallel_loop_share_its_region(at: str, depth: int, of_b: int, expected: list[float]) -> None:
    a = te.placeholder((64, 64), name="A")
    b = te.compute((64, 64), lambda i, j: te.exp(a[i, j]), name="B")
    task = Task([a, te.compute((64, 64), lambda i, j: b[i, j] + b[i, 63 - j], name="C")], targets.WIDE)
    sketch = sketch_of(task, Candidate(TRACE.format(at=at, depth=depth, of_b=of_b)))
    names = [facts.name for facts in population_facts(sketch.fold(()))]
    found = extract(sketch, np.zeros((1, 0), np.int64))[0]
    assert [found[names.index(name), COLUMN["parallel_region"]] for name in "BC"] == pytest.approx(expected)
