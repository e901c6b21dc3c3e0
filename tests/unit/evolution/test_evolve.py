"""Evolution on a space whose best row is known."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.evolution import EvolutionSettings, evolve, keys
from tests.unit.synthetic import Machine, OrdinalSpace

SPACE = OrdinalSpace((6, 12, 12, 9, 10, 14, 5, 8))
MACHINE = Machine((4, 8, 3, 6, 2, 11, 2, 6))
SMALL = EvolutionSettings(population=128, generations=4, parents=16, keep=48)
NONE = np.zeros((0, 8), np.int64)


def score(rows: np.ndarray) -> np.ndarray:
    return -MACHINE.latency(SPACE.canonical(rows))


def test_beats_random_search_at_equal_evaluations() -> None:
    evaluated = 0

    def counting(rows: np.ndarray) -> np.ndarray:
        nonlocal evaluated
        evaluated += len(rows)
        return score(rows)

    wins = 0
    for seed in range(20):
        evaluated = 0
        _, scores = evolve(SPACE, counting, NONE, SMALL, np.random.default_rng(seed))
        wins += scores[0] > score(SPACE.sample(evaluated, np.random.default_rng(seed))).max()
    assert wins >= 19


def test_same_seed_same_rows() -> None:
    one, two = (evolve(SPACE, score, NONE, SMALL, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    other, _ = evolve(SPACE, score, NONE, SMALL, np.random.default_rng(4))
    assert not np.array_equal(one[0], other)


def test_no_program_is_scored_twice() -> None:
    scored: list[bytes] = []

    def remembering(rows: np.ndarray) -> np.ndarray:
        scored.extend(keys(SPACE, rows))
        return score(rows)

    evolve(SPACE, remembering, SPACE.sample(10, np.random.default_rng(1)), SMALL, np.random.default_rng(0))
    assert len(scored) == len(set(scored))


def test_seeds_help_and_are_not_returned_when_seen() -> None:
    best = np.asarray([MACHINE.optimum])
    rows, scores = evolve(SPACE, score, best, SMALL, np.random.default_rng(0))
    np.testing.assert_array_equal(rows[0], best[0])
    rows, seeded = evolve(SPACE, score, best, SMALL, np.random.default_rng(0), seen=set(keys(SPACE, best)))
    assert keys(SPACE, best)[0] not in keys(SPACE, rows)
    assert seeded[0] < scores[0]
    few = dataclasses.replace(SMALL, generations=1)
    near = best + np.eye(8, dtype=np.int64)[:3]
    assert (
        evolve(SPACE, score, near, few, np.random.default_rng(0))[1][0]
        > evolve(SPACE, score, NONE, few, np.random.default_rng(0))[1][0]
    )


@settings(max_examples=60, deadline=None)
@given(
    extents=st.lists(st.integers(1, 5), min_size=0, max_size=5),
    population=st.integers(1, 40),
    generations=st.integers(0, 3),
    tournament=st.integers(1, 4),
    crossover=st.floats(0, 1),
    immigrants=st.floats(0, 1),
    scores=st.sampled_from(["flat", "random", "minus infinity", "nan", "mixed"]),
    valid=st.sampled_from(["all", "none", "some"]),
    seed=st.integers(0, 99),
)
def test_ends_with_distinct_valid_unseen_rows_best_first(
    extents: list[int],
    population: int,
    generations: int,
    tournament: int,
    crossover: float,
    immigrants: float,
    scores: str,
    valid: str,
    seed: int,
) -> None:
    allowed = {
        "all": lambda rows: np.ones(len(rows), bool),
        "none": lambda rows: np.zeros(len(rows), bool),
        "some": lambda rows: rows.sum(axis=1) % 2 == 0,
    }[valid]
    rng = np.random.default_rng(seed)
    space = OrdinalSpace(tuple(extents), allowed)
    if not extents:
        # There is one program, and nothing to mutate.
        object.__setattr__(space, "mutate", lambda rows, _: rows)
    make = {
        "flat": lambda n: np.zeros(n),
        "random": lambda n: rng.random(n),
        "minus infinity": lambda n: np.full(n, -np.inf),
        "nan": lambda n: np.full(n, np.nan),
        "mixed": lambda n: np.where(rng.random(n) < 0.5, -np.inf, rng.random(n)),
    }[scores]
    knobs = EvolutionSettings(population, generations, 0.85, crossover, immigrants, tournament, parents=8, keep=20)
    seen = set(keys(space, space.sample(3, rng)))
    rows, values = evolve(space, lambda rows: make(len(rows)), space.sample(2, rng), knobs, np.random.default_rng(seed), seen)
    found = keys(space, rows)
    assert len(rows) == len(values) <= 20
    assert len(set(found)) == len(found)
    assert not seen & set(found)
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) <= 0)
    assert space.valid(rows).all()
    assert ((rows >= 0) & (rows < space.sizes)).all()
    if valid == "none" or scores in ("nan", "minus infinity"):
        assert len(rows) == 0


@pytest.mark.parametrize("size", [1, 2])
def test_a_tiny_space_is_returned_whole(size: int) -> None:
    space = OrdinalSpace((size,))
    rows, _ = evolve(space, lambda rows: -rows[:, 0].astype(float), np.zeros((0, 1), np.int64), SMALL, np.random.default_rng(0))
    np.testing.assert_array_equal(rows[:, 0], np.arange(size))


def test_keep_bounds_what_is_returned() -> None:
    rows, _ = evolve(SPACE, score, NONE, dataclasses.replace(SMALL, keep=5), np.random.default_rng(0))
    assert len(rows) == 5
