"""Value learning: the search itself, with values that are exact, and the labels that values are learnt from."""

import numpy as np

from ansorlite.cost_model import RandomModel
from ansorlite.search import Observation, SearchProblem
from ansorlite.search.value import ValueSearch, ValueSettings, beam, best_below
from tests.unit.synthetic import Machine, OrdinalSpace, Rows, SyntheticProgramSpace

SIZES = (5, 6, 4, 7)


def test_under_exact_values_one_beginning_is_enough() -> None:
    rng = np.random.default_rng(0)
    speed = rng.random(SIZES)

    def exact(prefixes: Rows) -> np.ndarray:
        below = speed.max(axis=tuple(range(prefixes.shape[1], len(SIZES)))) if prefixes.shape[1] < len(SIZES) else speed
        return below[tuple(prefixes.T)]

    (row,) = beam(np.array(SIZES), exact, width=1, values=100, rng=rng)
    assert speed[tuple(row)] == speed.max()
    rows = beam(np.array(SIZES), exact, width=8, values=100, rng=rng)
    assert (np.diff(speed[tuple(rows.T)]) <= 0).all()
    assert len(np.unique(rows, axis=0)) == 8


def test_a_beginning_is_as_good_as_the_best_that_begins_so() -> None:
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    latencies = np.array([4.0, 2.0, 1.0, np.inf])
    np.testing.assert_array_equal(best_below(rows, latencies), [[0.5, 0.25], [0.5, 0.5], [1, 1], [1, 0]])


def test_it_learns_what_pays() -> None:
    """Far better than as many programs at random, of 160,000."""
    space, machine = OrdinalSpace((20, 20, 20, 20)), Machine((12, 5, 9, 3))
    problem = SearchProblem((SyntheticProgramSpace("s", space, machine.features),))
    rng = np.random.default_rng(0)
    search = ValueSearch(problem, RandomModel(rng), rng, ValueSettings(epochs=60))
    best = np.inf
    for _ in range(6):
        batch = search.propose(16)
        rows = np.array([problem.spaces[0].row_of(candidate) for candidate in batch])
        latencies = machine.latency(rows)
        best = min(best, float(latencies.min()))
        search.observe([*map(Observation, batch, latencies.tolist())])
    at_random = [machine.latency(space.sample(96, np.random.default_rng(seed))).min() for seed in range(20)]
    assert best < np.median(at_random)
