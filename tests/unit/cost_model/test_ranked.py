"""Trees that learn an order, and trees for which what a program was stopped at is a bound."""

import numpy as np
import pytest

from ansorlite.cost_model import GBDT, Group, pairwise_accuracy
from ansorlite.cost_model.ranked import RankedTrees
from ansorlite.cost_model.uncertain import Bagged


def group(n: int, seed: int, scale: float = 1e-3, task: str = "a") -> Group:
    features = np.random.default_rng(seed).random((n, 2, 4))
    return Group(features, scale * np.exp(-2 * features[:, :, 0].sum(axis=1)), task)


def test_an_order_is_learnt_over_tasks_of_any_scale() -> None:
    model = RankedTrees()
    model.fit([group(80, 0), group(60, 1, 5.0, "b"), group(1, 2, 1.0, "c")])
    unseen = group(80, 3)
    assert pairwise_accuracy(model.predict(unseen.features), unseen.latencies) > 0.8
    again = RankedTrees()
    again.fit([group(30, 7)])
    again.fit([group(80, 0), group(60, 1, 5.0, "b"), group(1, 2, 1.0, "c")])
    np.testing.assert_array_equal(again.predict(unseen.features), model.predict(unseen.features))


def test_without_anything_that_ran_all_are_the_same() -> None:
    model, given = RankedTrees(), group(5, 0)
    for groups in ([], [Group(given.features, np.full(5, np.inf))]):
        model.fit(groups)
        np.testing.assert_array_equal(model.predict(given.features), np.zeros(5))


def stopped() -> Group:
    """Half of the programs were stopped at twice the best; a number tells them, and how slow they are was never seen."""
    known = group(200, 0)
    slow = known.latencies > np.median(known.latencies)
    return Group(known.features, np.where(slow, np.median(known.latencies), known.latencies), censored=slow)


def test_a_bound_is_no_label() -> None:
    """To expect a stopped program slower than it was stopped at is no error: what the others teach of it stands."""
    known, unseen = stopped(), group(200, 1)
    found = {}
    for bounds in (False, True):
        model = GBDT(bounds=bounds)
        model.fit([known])
        found[bounds] = model.predict(unseen.features)
    assert known.censored is not None
    label = known.latencies.min() / known.latencies[known.censored][0]
    assert found[True].min() < found[False].min() < label + 0.1
    fast = known.latencies.min() / unseen.latencies > label
    for scores in found.values():
        assert pairwise_accuracy(scores[fast], unseen.latencies[fast]) > 0.75
    plain = GBDT(bounds=True)
    plain.fit([Group(known.features, known.latencies)])
    without = GBDT()
    without.fit([known])
    np.testing.assert_array_equal(plain.predict(unseen.features), without.predict(unseen.features))


def test_a_sample_of_programs_keeps_what_is_known_of_each() -> None:
    known = stopped()
    rows = np.array([3, 3, 0, 9])
    taken = known.take(rows)
    assert known.censored is not None
    assert taken.censored is not None
    np.testing.assert_array_equal(taken.censored, known.censored[rows])
    np.testing.assert_array_equal(taken.features, known.features[rows])
    Bagged(np.random.default_rng(0), 2).fit([known])
    with pytest.raises(ValueError, match="finite"):
        RankedTrees().fit([Group(np.full((3, 1, 2), np.nan), np.ones(3))])
