from dataclasses import replace

import numpy as np
import pytest

from ansorlite.cost_model import GBDT, CostModel, Group, RandomModel, pairwise_accuracy, relative_throughput
from ansorlite.cost_model.gbdt import SMALL_TREES

from .synthetic import FEATURES, programs, speed


def test_ranks_unseen_programs_better_than_the_mean_of_their_features() -> None:
    rng = np.random.default_rng(0)
    train, test = (
        Group(g.features, 1e-3 / (8 + speed(g.features).sum(axis=1))) for g in (programs(1500, 4, rng), programs(400, 4, rng))
    )
    model = GBDT()
    model.fit([train])
    accuracy = pairwise_accuracy(model.predict(test.features), test.latencies)
    averaged = GBDT()
    averaged.fit([Group(train.features.mean(axis=1, keepdims=True), train.latencies)])
    baseline = pairwise_accuracy(averaged.predict(test.features.mean(axis=1, keepdims=True)), test.latencies)
    assert accuracy > 0.9
    assert accuracy > baseline + 0.05


@pytest.mark.parametrize("statements", [1, 8, 24])
def test_learns_whatever_the_number_of_statements(statements: int) -> None:
    """With a Hessian that forgets how many statements move together, many of them diverge."""
    rng = np.random.default_rng(1)
    scale = 1 / np.sqrt(statements)
    groups = [programs(500, statements, rng) for _ in range(2)]
    train, test = (Group(g.features, 1e-3 * np.exp(np.log(g.latencies * 1e3) * scale)) for g in groups)
    model = GBDT(replace(SMALL_TREES, learning_rate=0.5))
    model.fit([train])
    (label,) = relative_throughput([train])
    assert np.mean((model.predict(train.features) - label) ** 2 * label) < 0.2 * np.mean((label.mean() - label) ** 2 * label)
    assert pairwise_accuracy(model.predict(test.features), test.latencies) > 0.65


def test_groups_of_different_statement_counts_train_one_model() -> None:
    rng = np.random.default_rng(2)
    train = [programs(600, statements, rng) for statements in (2, 3, 5)]
    model = GBDT()
    model.fit(train)
    for statements in (2, 3, 5):
        test = programs(200, statements, rng)
        assert pairwise_accuracy(model.predict(test.features), test.latencies) > 0.7


def test_same_data_same_scores() -> None:
    data = programs(200, 3, np.random.default_rng(3))
    one, two = GBDT(), GBDT()
    one.fit([data])
    two.fit([programs(50, 2, np.random.default_rng(4))])
    two.fit([data])  # what was learnt before is forgotten
    np.testing.assert_array_equal(one.predict(data.features), two.predict(data.features))


def test_offsets_are_not_learnt_again() -> None:
    data = programs(500, 3, np.random.default_rng(5))
    (label,) = relative_throughput([data])
    model = GBDT()
    model.fit([data], offsets=[label])
    np.testing.assert_allclose(model.predict(data.features), 0, atol=1e-9)


@pytest.mark.parametrize("model", [GBDT(), RandomModel(np.random.default_rng(0))])
def test_without_data_it_scores_all_the_same(model: CostModel) -> None:
    features = np.ones((4, 2, FEATURES))
    for groups in ([], [Group(features[:0], np.zeros(0))], [Group(features, np.full(4, np.inf))]):
        model.fit(groups)
        scores = model.predict(features)
        assert scores.shape == (4,)
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_programs_and_constant_features_do_no_harm(n: int) -> None:
    model = GBDT()
    model.fit([Group(np.ones((n, 2, FEATURES)), np.linspace(1, 2, n))])
    assert np.isfinite(model.predict(np.ones((5, 2, FEATURES)))).all()


def test_failures_are_learnt_from() -> None:
    rng = np.random.default_rng(6)
    data = programs(600, 2, rng)
    fails = data.features[:, 0, 5] > 0.3
    model = GBDT()
    model.fit([Group(data.features, np.where(fails, np.inf, 1e-3))])
    scores = model.predict(data.features)
    assert scores[fails].mean() < scores[~fails].mean() - 0.3


def test_a_feature_that_is_not_a_number_is_refused() -> None:
    features = np.ones((3, 2, FEATURES))
    features[1, 1, 4] = np.nan
    with pytest.raises(ValueError, match="finite"):
        GBDT().fit([Group(features, np.ones(3))])


def test_weights_of_many_magnitudes_do_not_break_the_training() -> None:
    """LightGBM aborts on a leaf that it believed, from its Hessian, to hold something."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        data = programs(8, 3, rng)
        model = GBDT(replace(SMALL_TREES, learning_rate=0.2, trees=100))
        model.fit([Group(data.features, data.latencies ** rng.uniform(1, 4))], offsets=[rng.random(8)])
        assert np.isfinite(model.predict(data.features)).all()


def test_the_yardstick_is_the_best_of_the_task() -> None:
    features = np.zeros((2, 1, 1))
    labels = relative_throughput(
        [
            Group(features, np.asarray([2.0, 4.0]), "a"),
            Group(features, np.asarray([1.0, np.inf]), "a"),
            Group(features, np.asarray([5.0, 10.0]), "b"),
            Group(features, np.asarray([np.inf, np.inf]), "c"),
        ]
    )
    np.testing.assert_array_equal(labels, [[0.5, 0.25], [1, 0], [1, 0.5], [0, 0]])
