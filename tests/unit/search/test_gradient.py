"""Felix's descent: where rows lie, and that following slopes pays."""

import numpy as np

import ansorlite as al
from ansorlite.features.programs import ProgramSpace
from ansorlite.search.coordinates import coordinates, nearest
from ansorlite.search.gradient import Gradient
from ansorlite.spaces.derivation import derive
from ansorlite.target import host
from tests.unit.synthetic import Machine, OrdinalSpace
from tests.workloads import matmul


def test_a_row_is_nearest_to_where_it_lies() -> None:
    for sketch in derive(al.Task(matmul(24, 40, 36), host(1))):
        space = ProgramSpace(sketch).space
        rows = space.sample(20, np.random.default_rng(0))
        again = nearest(coordinates(space, rows[0]), space.embed(rows))
        # Choices that lie in one place are one: nothing says which it was.
        np.testing.assert_array_equal(space.embed(again), space.embed(rows))


def test_it_finds_better_rows_than_it_has_seen() -> None:
    """Of a space of 10^8 rows it scores a few hundred."""
    space, machine = OrdinalSpace((100, 100, 100, 100)), Machine((70, 30, 60, 20))
    better = 0
    for seed in range(3):
        seen = []

        def score(rows: np.ndarray, seen: list[np.ndarray] = seen) -> np.ndarray:
            seen.append(rows)
            return -np.log(machine.latency(rows))

        explore = Gradient(steps=64, rate=2.0, epochs=100)(space, np.random.default_rng(seed))
        rows, scores = explore(score, np.zeros((0, 4), np.int64), 1.0, set())
        assert (np.diff(scores) <= 0).all()
        np.testing.assert_allclose(scores[:3], -np.log(machine.latency(rows[:3])))
        better += scores[0] > -np.log(machine.latency(seen[0])).max() + 0.3
    assert better >= 2
