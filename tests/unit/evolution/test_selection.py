import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ansorlite.evolution import best_first, epsilon_greedy, first_of_each, spread, tournament
from ansorlite.evolution.keys import fingerprints, packed


def test_tournament_prefers_the_best_whatever_the_scale() -> None:
    scores = np.arange(100.0)
    picked = tournament(scores, 5000, 3, np.random.default_rng(0))
    assert 70 < picked.mean() < 80  # the best of three uniform draws: 3/4
    np.testing.assert_array_equal(picked, tournament(np.exp(scores), 5000, 3, np.random.default_rng(0)))


def test_tournament_on_flat_scores_is_uniform() -> None:
    counts = np.bincount(tournament(np.zeros(10), 10000, 3, np.random.default_rng(0)), minlength=10)
    assert counts.min() > 800


@given(st.integers(0, 200), st.integers(0, 200), st.floats(0, 1))
def test_epsilon_greedy_fills_the_batch(n: int, ranked: int, epsilon: float) -> None:
    greedy, explored = epsilon_greedy(n, ranked, epsilon)
    assert greedy + explored == n
    assert 0 <= greedy <= ranked
    if n and ranked:
        assert greedy >= 1
    if epsilon > 0 and n > 1:
        assert explored >= 1


def test_spread_keeps_the_order_and_the_distance() -> None:
    rows = np.asarray([[0, 0, 0], [0, 0, 1], [0, 1, 1], [5, 5, 5], [5, 5, 6]])
    np.testing.assert_array_equal(spread(rows, 3, 1), [0, 1, 2])
    np.testing.assert_array_equal(spread(rows, 3, 2), [0, 2, 3])
    np.testing.assert_array_equal(spread(rows, 4, 3), [0, 1, 2, 3])  # two are apart; the first left out fill up
    assert len(spread(rows, 9, 2)) == 5


def test_first_of_each_skips_what_is_known() -> None:
    known = {b"b"}
    assert first_of_each([b"a", b"b", b"a", b"c"], known) == [0, 3]
    assert known == {b"a", b"b", b"c"}


def test_best_first_is_stable() -> None:
    np.testing.assert_array_equal(best_first(np.asarray([1.0, 3.0, 1.0, 3.0])), [1, 3, 0, 2])


@given(st.integers(0, 5), st.integers(0, 99))
def test_fingerprints_tell_rows_apart(columns: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 3, size=(40, columns)) << 20
    prints, whole = fingerprints(rows), packed(rows)
    assert [[a == b for b in prints] for a in prints] == [[a == b for b in whole] for a in whole]
    np.testing.assert_array_equal(fingerprints(rows[::-1]), prints[::-1])
