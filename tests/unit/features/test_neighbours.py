"""Reads of neighbours count the lines that they share once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorlite import te
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.features.population import population_facts
from ansorlite.search.default import default_candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.spaces.derivation import derive
from ansorlite.target import resolve
from ansorlite.task import Task
from tests import workloads


def lines(tensors: list[te.Tensor], stage: str) -> float:
    """Bytes of all cache lines that a stage's statement touches, in the default program."""
    task = Task(tensors, replace(resolve("icelake-server"), threads=1))
    sketch = sketch_of(task, default_candidate(task, derive(task)))
    names = [facts.name for facts in population_facts(sketch.fold(()))]
    features = extract(sketch, np.zeros((1, 0), np.int64))[0, names.index(stage)]
    return float(2 ** features[COLUMN["bytes"]] - 1)


@pytest.mark.parametrize("apart", [1, 5])
def test_points_of_a_stencil(apart: int) -> None:
    """Three points side by side are one stretch of the input; three that are apart are three."""
    x = te.placeholder((4096,), name="x")
    y = te.compute((4096 - 2 * apart,), lambda i: x[i] + x[i + apart] + x[i + 2 * apart], name="y")
    arrays = {1: 2, 5: 4}[apart]
    assert lines([x, y], "y") == pytest.approx(arrays * 4 * 4096, rel=0.02)


def test_bytes_of_words() -> None:
    """Four rows of bytes are read for one of words: each byte once, beside a buffer of words, whole or of a part."""
    count = 256 * 512
    assert count < lines(workloads.quantised_matmul(64, 256, 512), "C_b_packed") <= 2 * count
