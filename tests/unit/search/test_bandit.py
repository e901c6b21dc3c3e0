import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ansorlite.search.bandit import shares


@given(
    st.lists(st.lists(st.sampled_from([1.0, 2.0, np.inf]), max_size=6), min_size=1, max_size=5),
    st.integers(0, 50),
    st.integers(0, 99),
)
def test_shares_sum_to_the_batch(latencies: list[list[float]], n: int, seed: int) -> None:
    result = shares([np.asarray(each, float) for each in latencies], n, np.random.default_rng(seed))
    assert result.sum() == n
    assert (result >= 0).all()


def test_everyone_is_tried_before_anyone_is_judged() -> None:
    np.testing.assert_array_equal(shares([np.zeros(0)] * 4, 8, np.random.default_rng(0)), [2, 2, 2, 2])
    assert (shares([np.full(50, 1.0), np.zeros(0)], 8, np.random.default_rng(0))[1]) >= 2


def test_who_holds_the_best_gets_the_most_and_no_one_is_cut_off() -> None:
    rng = np.random.default_rng(0)
    # The second is better on average, but the first has the fastest programs.
    wide, narrow, failing = rng.uniform(1, 10, 30), rng.uniform(2.5, 3, 30), np.full(30, np.inf)
    totals = np.sum([shares([wide, narrow, failing], 16, rng) for _ in range(200)], axis=0)
    assert totals[2] < totals[0] / 5
    few = np.sum([shares([np.full(3, 5.0), rng.uniform(1, 2, 10)], 16, rng) for _ in range(200)], axis=0)
    assert few[0] > 20
