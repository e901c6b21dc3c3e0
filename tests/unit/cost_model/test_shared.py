"""One model for all tasks of a run."""

import numpy as np

from ansorlite.cost_model import Group, rank_correlation
from ansorlite.cost_model.boosting import ForestSettings
from ansorlite.cost_model.shared import Pool, SharedModel

SETTINGS = ForestSettings(trees=40, leaves=8, learning_rate=0.3, feature_fraction=1.0, min_leaf=2)


def group(n: int, seed: int, scale: float) -> Group:
    features = np.random.default_rng(seed).random((n, 2, 3))
    return Group(features, scale * np.exp(-features[:, :, 0].sum(axis=1)))


def test_a_task_learns_from_another_and_knows_nothing_before_the_warm_up() -> None:
    pool = Pool(SETTINGS, warm_up=100)
    first, second = SharedModel(pool, "a"), SharedModel(pool, "b")
    unseen = group(50, 9, 1.0)
    first.fit([group(60, 0, 1.0)])
    assert not first.predict(unseen.features).any()
    second.fit([group(60, 1, 1e-3)])
    assert rank_correlation(first.predict(unseen.features), unseen.latencies) > 0.9
    assert (first.predict(unseen.features) == second.predict(unseen.features)).all()


def test_what_a_task_tells_again_takes_the_place_of_what_it_told() -> None:
    pool = Pool(SETTINGS, warm_up=100)
    model = SharedModel(pool, "a")
    for _ in range(5):
        model.fit([group(60, 0, 1.0)])
    assert not model.predict(group(5, 1, 1.0).features).any()
