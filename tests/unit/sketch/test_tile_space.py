"""The laws that every search strategy relies on."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests import workloads
from tests.unit.sketch.rows import sketches

N = 200
SPACES = [
    TileSpace(sketch)
    for tensors in (
        workloads.matmul_bias_relu(14, 18, 9),
        workloads.conv2d(1, 4, 7, 9, 6),
        workloads.softmax(7, 37),
        workloads.sum_of_squares(1009),
        workloads.matmul(1, 1, 1),
    )
    for sketch in sketches(tensors)
]
spaces = pytest.mark.parametrize("space", SPACES, ids=range(len(SPACES)))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def in_range(space: TileSpace, rows: np.ndarray) -> bool:
    return rows.dtype == np.int64 and rows.shape[1:] == space.sizes.shape and bool(((rows >= 0) & (rows < space.sizes)).all())


@spaces
def test_samples_are_in_range_and_reach_everything(space: TileSpace) -> None:
    rows = space.sample(2000, rng())
    assert rows.shape == (2000, len(space.holes))
    assert in_range(space, rows)
    for column, size in enumerate(space.sizes):
        if size <= 20:
            assert set(rows[:, column].tolist()) == set(range(size))
    assert space.valid(rows).all()


@spaces
def test_a_mutation_changes_one_hole(space: TileSpace) -> None:
    rows = space.sample(N, rng())
    found = space.mutate(rows, rng(1))
    assert in_range(space, found)
    changed = (found != rows).sum(axis=1)
    assert (changed == (1 if (space.sizes > 1).any() else 0)).all()
    for column, size in enumerate(space.sizes):
        assert (found != rows)[:, column].any() or size == 1 or N / len(space.sizes) < 10


@spaces
def test_the_rows_given_stay_as_they_are(space: TileSpace) -> None:
    rows = space.sample(N, rng())
    copy = rows.copy()
    space.mutate(rows, rng())
    space.crossover(rows, rows[::-1], rng())
    space.neighbours(rows[0])
    space.complete(rows[:, :2], rng())
    np.testing.assert_array_equal(rows, copy)


@spaces
def test_a_child_takes_every_hole_from_one_of_its_parents(space: TileSpace) -> None:
    a, b = space.sample(N, rng(1)), space.sample(N, rng(2))
    child = space.crossover(a, b, rng(3))
    assert in_range(space, child)
    assert ((child == a) | (child == b)).all()
    differ = a != b
    if differ.sum() > 100:
        assert 0.3 < (child == a)[differ].mean() < 0.7


@spaces
def test_neighbours_differ_in_one_hole(space: TileSpace) -> None:
    for row in space.sample(5, rng()):
        near = space.neighbours(row)
        assert near.shape == (len(near), len(space.holes))
        assert in_range(space, near)
        assert ((near != row).sum(axis=1) == 1).all()
        assert len(np.unique(near, axis=0)) == len(near)
        assert (len(near) > 0) == bool((space.sizes > 1).any())


@spaces
def test_completing_keeps_the_prefix(space: TileSpace) -> None:
    assert sorted(space.order) == list(range(len(space.holes)))
    whole = space.sample(N, rng())
    for length in (0, 1, len(space.holes) // 2, len(space.holes)):
        prefix = whole[:, list(space.order[:length])]
        rows = space.complete(prefix, rng(1))
        assert in_range(space, rows)
        np.testing.assert_array_equal(rows[:, list(space.order[:length])], prefix)


@spaces
def test_coordinates_are_finite_and_tell_tiles_apart(space: TileSpace) -> None:
    rows = np.unique(space.sample(N, rng()), axis=0)
    found = space.embed(rows)
    assert found.dtype == np.float64
    assert found.ndim == 2
    assert len(found) == len(rows)
    assert np.isfinite(found).all()
    assert len(np.unique(found, axis=0)) == len(rows)


@spaces
def test_the_same_seed_gives_the_same_rows(space: TileSpace) -> None:
    def run(seed: int) -> list[bytes]:
        draw = rng(seed)
        a, b = space.sample(N, draw), space.sample(N, draw)
        return [x.tobytes() for x in (a, space.mutate(a, draw), space.crossover(a, b, draw), space.complete(a[:, :1], draw))]

    assert run(5) == run(5)
    assert run(5) != run(6) or not (space.sizes > 1).any()


@spaces
def test_no_rows_are_fine(space: TileSpace) -> None:
    none = space.sample(0, rng())
    assert none.shape == (0, len(space.holes))
    assert len(space.mutate(none, rng())) == len(space.crossover(none, none, rng())) == len(space.embed(none)) == 0
    assert len(space.canonical(none)) == len(space.valid(none)) == 0


def test_what_decides_is_drawn_from_all_that_is_valid() -> None:
    """Of a product of one row one tile in a hundred has threads enough; what else there is to choose stays free."""
    for sketch in derive(Task(workloads.matmul(1, 19, 23), "emulated")):
        space = TileSpace(sketch)
        holes = list(sketch.deciding)
        assert 0 < len(holes) < len(space.holes)
        assert space.sizes.prod() > 1 << 17
        uniform = rng().integers(space.sizes, size=(50_000, len(space.holes)))
        valid = space.valid(uniform)
        assert 0 < valid.mean() < 0.02
        rows = space.sample(2000, rng(1))
        assert space.valid(rows).all()
        np.testing.assert_array_equal(np.unique(rows[:, holes], axis=0), np.unique(uniform[valid][:, holes], axis=0))
        for column in set(range(len(space.holes))) - set(holes):
            assert set(rows[:, column].tolist()) == set(range(space.sizes[column]))
