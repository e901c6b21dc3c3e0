"""Features of programs whose numbers are known without a computer."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.features import NAMES, NUM_FEATURES, extract
from ansorlite.features.names import COLUMN
from ansorlite.features.population import population_facts
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from tests import workloads
from tests.unit.sketch.rows import row_of, sketch_with, sketches

FUSED = sketch_with(workloads.matmul_bias_relu(16, 32, 8), "s.reverse_compute_at(E,", without=["s.cache_read("])
TILES = {"C__i": (2, 2, 2, 2), "C__j": (1, 2, 1, 16), "C__k": (2, 4)}


def features(sketch: Sketch, stage: str, row: np.ndarray) -> dict[str, float]:
    names = [facts.name for facts in population_facts(sketch.fold(row.tolist()))]
    return dict(zip(NAMES, extract(sketch, row[None])[0, names.index(stage)].tolist(), strict=True))


def count(value: float) -> float:
    """What a magnitude counts."""
    return float(2.0**value - 1.0)


def test_names_are_columns() -> None:
    assert len(set(NAMES)) == NUM_FEATURES == len(COLUMN)
    assert all(COLUMN[name] == column for column, name in enumerate(NAMES))


def test_a_matmul() -> None:
    found = features(FUSED, "C", row_of(FUSED, **TILES, C__lanes=16, C__unroll=64, C__parallel=1, C__at="j1"))
    assert count(found["iterations"]) == pytest.approx(16 * 32 * 8)
    assert count(found["mul"]) == pytest.approx(16 * 32 * 8)
    assert count(found["cheap"]) == pytest.approx(16 * 32 * 8)
    assert count(found["parallel"]) == pytest.approx(2)
    assert found["balance"] == 1.0
    assert 2.0 ** found["lanes"] == 16
    assert found["lane_use"] == 1.0
    assert found["in_registers"] == found["accumulates"] == 1.0
    assert count(found["reduce"]) == pytest.approx(4)  # k1 adds to registers, k0 to the tile behind them
    assert count(found["accumulators"]) == pytest.approx(2)  # i3 by one vector of j3
    assert count(found["bytes"]) >= 4 * (16 * 8 + 8 * 32)


def test_shifted_tiles_and_odd_rows_are_counted_as_they_run() -> None:
    odd = sketch_with(workloads.matmul_bias_relu(16, 30, 8), "s.reverse_compute_at(E,", without=["s.cache_read("])
    row = row_of(odd, C__i=(2, 2, 2, 2), C__j=(1, 2, 1, 16), C__k=(2, 4), C__lanes=16, C__at="j1")
    assert count(features(odd, "C", row)["iterations"]) == pytest.approx(16 * 32 * 8)


def test_an_unbalanced_parallel_loop() -> None:
    sums = sketch_with(workloads.softmax(3, 64), "s.compute_at(exp,", without=["s.rfactor("])
    row = row_of(sums, softmax__i=(3, 1), softmax__j=(1, 64), softmax__parallel=1)
    assert features(sums, "softmax", row)["balance"] == pytest.approx(3 / 4)


@pytest.mark.parametrize("name", ["conv2d", "softmax", "sum_of_squares", "one"])
def test_features_are_finite_and_a_row_does_not_depend_on_its_neighbours(name: str) -> None:
    tensors = {
        "conv2d": workloads.conv2d_bias_relu(1, 4, 7, 9, 6),
        "softmax": workloads.softmax(7, 37),
        "sum_of_squares": workloads.sum_of_squares(1009),
        "one": workloads.matmul(1, 1, 1),
    }[name]
    for sketch in sketches(tensors):
        rows = TileSpace(sketch).sample(50, np.random.default_rng(0))
        together = extract(sketch, rows)
        assert together.dtype == np.float64
        assert np.isfinite(together).all()
        np.testing.assert_array_equal(together[::-1], extract(sketch, rows[::-1]))
        np.testing.assert_allclose(together[:3], np.concatenate([extract(sketch, row[None]) for row in rows[:3]]), atol=1e-9)


def test_programs_with_one_key_have_the_same_features() -> None:
    for sketch in sketches(workloads.matmul_bias_relu(4, 6, 3)):
        space = TileSpace(sketch)
        rows = np.unique(space.sample(600, np.random.default_rng(0)), axis=0)
        _, first, which = np.unique(space.canonical(rows), axis=0, return_index=True, return_inverse=True)
        assert len(first) < len(rows)
        found = extract(sketch, rows)
        np.testing.assert_allclose(found, found[first][which.reshape(-1)], atol=1e-9)
