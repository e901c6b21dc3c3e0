"""Strided loads whose elements are near: whole vectors are loaded."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.task import Task
from tests import targets


@pytest.mark.parametrize(
    ("stride", "strided", "near", "whole"),
    [(1, 0, 0, 0), (2, 4, 4, 8), (4, 4, 4, 16), (5, 4, 0, 0)],
)
def test_near_loads(stride: int, strided: int, near: int, whole: int) -> None:
    """Of a row of 64, in four vectors."""
    a = te.placeholder((8, 64 * stride), name="A")
    task = Task([a, te.compute((8, 64), lambda i, j: a[i, j * stride] + 1, name="B")], targets.WIDE)
    trace = 'def schedule(s):\n    B = s.stage("B")\n    s.parallel((B["i"],), depth=1)\n    s.vectorize(B["j"], lanes=16)'
    found = extract(sketch_of(task, Candidate(trace)), np.zeros((1, 0), np.int64))[0, 0]
    counts = [2.0 ** found[COLUMN[name]] - 1 for name in ("strided_loads", "near_loads", "near_vectors")]
    assert counts == pytest.approx([strided, near, whole])
