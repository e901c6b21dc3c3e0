"""AutoTVM's transfer: what other tasks taught first, the task's own measurements more and more."""

import numpy as np
import pytest

from ansorlite.cost_model import GBDT, Group, rank_correlation
from ansorlite.cost_model.based import HALVED, BasedModel


def programs(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 1, 4))


def latencies(features: np.ndarray, twist: float = 0.0) -> np.ndarray:
    x = features[:, 0]
    return np.exp(2 * (x[:, 0] - 0.3) ** 2 + x[:, 1] + twist * x[:, 2])


def fitted(*groups: Group) -> GBDT:
    model = GBDT()
    model.fit(groups)
    return model


BASE = fitted(*(Group(programs(300, seed), latencies(programs(300, seed)), f"task {seed}") for seed in range(2)))
FEATURES, TEST = programs(16, 7), programs(200, 8)
OWN = Group(FEATURES, latencies(FEATURES, 0.5))


def test_before_anything_is_measured_the_base_ranks() -> None:
    np.testing.assert_array_equal(BasedModel(BASE).predict(TEST), BASE.predict(TEST))


def test_few_measurements_and_a_base_are_more_than_either() -> None:
    model = BasedModel(BASE)
    model.fit([OWN])
    wanted = latencies(TEST, 0.5)
    based, base, own = (rank_correlation(each.predict(TEST), wanted) for each in (model, BASE, fitted(OWN)))
    assert based > own + 0.1
    assert based > base - 0.02


@pytest.mark.parametrize("count", [5 * HALVED, 8 * HALVED])
def test_many_measurements_leave_the_base_out(count: int) -> None:
    many = programs(count, 9)
    group = Group(many, latencies(many))
    model = BasedModel(BASE)
    model.fit([group])
    np.testing.assert_array_equal(model.predict(TEST), fitted(group).predict(TEST))


def test_a_new_fit_forgets() -> None:
    model = BasedModel(BASE)
    model.fit([OWN])
    model.fit([])
    np.testing.assert_array_equal(model.predict(TEST), BASE.predict(TEST))
