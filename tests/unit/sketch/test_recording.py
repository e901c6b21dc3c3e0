"""What computes conditions, keys and features of a sketch is recorded from one fold of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ansorlite.features import extract
from ansorlite.sketch import sketch as sketches
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests import workloads
from tests.targets import WIDE

#: Ways to ask for all there is.
ORDERS: dict[str, tuple[Callable[[Sketch, Any], Any], ...]] = {
    "as a search does": (Sketch.valid, extract, Sketch.canonical),
    "features first": (extract, Sketch.canonical, Sketch.valid),
    "keys first": (Sketch.canonical, Sketch.valid, extract),
}


def derived() -> tuple[Sketch, ...]:
    return derive(Task(workloads.matmul_relu(24, 32, 16), WIDE))


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was folded over all rows."""
    found: list[object] = []
    fold = sketches.fold
    monkeypatch.setattr(sketches, "fold", lambda structure, choose: found.append(structure) or fold(structure, choose))
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_a_sketch_is_folded_once_in_whatever_order(order: str, folds: list[object]) -> None:
    alone = {}
    for ask in ORDERS[order]:  # of a sketch each
        sketch = derived()[0]
        rows = np.random.default_rng(0).integers([hole.size for hole in sketch.holes], size=(50, len(sketch.holes)))
        alone[ask] = ask(sketch, rows)
    folds.clear()
    sketch = derived()[0]
    for ask in ORDERS[order]:
        np.testing.assert_array_equal(ask(sketch, rows), alone[ask])
    assert folds == [sketch.structure]


def test_folds_are_kept_of_few_sketches(folds: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "_FOLDS", sketches._Folds(2))
    first, *others = (derived()[0] for _ in range(3))
    rows = np.zeros((1, len(first.holes)), np.int64)
    for sketch in (first, *others):
        sketch.valid(rows)
    assert len(folds) == 3
    for sketch in others:
        extract(sketch, rows)
    assert len(folds) == 3
    extract(first, rows)
    assert len(folds) == 4
    assert sketches._FOLDS._kept == {}
