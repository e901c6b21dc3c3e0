"""What is learnt of a prior's errors on some tasks holds on others; it travels as text."""

import json

import numpy as np
import pytest

from ansorlite.cost_model import Group, rank_correlation
from ansorlite.cost_model.experience import Experienced, from_json, learn, shipped, to_json
from ansorlite.features.names import NUM_FEATURES
from tests.targets import WIDE

from .synthetic import programs


def half_right(features: np.ndarray) -> np.ndarray:
    """Sees one of the three terms."""
    return np.asarray(np.tanh(features[..., 0]).sum(axis=1))


def tasks(count: int, programs_each: int, seed: int) -> list[Group]:
    """Tasks of very different latencies."""
    rng = np.random.default_rng(seed)
    groups = [programs(programs_each, int(rng.integers(1, 5)), rng, f"task {seed} {number}") for number in range(count)]
    return [Group(group.features, group.latencies * 10.0 ** rng.uniform(-3, 3), group.task) for group in groups]


def test_other_tasks_teach_what_the_prior_gets_wrong() -> None:
    both = Experienced(half_right, learn(tasks(20, 60, 0), half_right))
    unseen = tasks(10, 200, 1)
    before, after = (np.mean([rank_correlation(p(g.features), g.latencies) for g in unseen]) for p in (half_right, both))
    assert after > before + 0.1


def test_a_factor_on_a_task_and_programs_that_failed_teach_nothing() -> None:
    groups = tasks(8, 40, 2)
    slower = [Group(g.features, g.latencies * 7, g.task) if number % 2 else g for number, g in enumerate(groups)]
    failing = [
        Group(np.concatenate([g.features, g.features + 9]), np.concatenate([g.latencies, np.full(40, np.inf)]), g.task)
        for g in slower
    ]
    features = groups[0].features
    expected = learn(groups, half_right).predict(features)
    np.testing.assert_allclose(learn(failing, half_right).predict(features), expected, atol=1e-6)


def test_written_and_read_it_says_the_same() -> None:
    forest = learn(tasks(6, 60, 3), half_right)
    features = tasks(1, 50, 4)[0].features
    np.testing.assert_allclose(from_json(to_json(forest)).predict(features), forest.predict(features), atol=1e-3)


def test_features_of_another_version_are_refused() -> None:
    text = json.loads(to_json(learn(tasks(6, 60, 3), half_right)))
    text["used"][0] = "vector_moves"
    with pytest.raises(ValueError, match="vector_moves"):
        from_json(json.dumps(text))


def test_without_a_program_that_ran_there_is_nothing_to_learn() -> None:
    with pytest.raises(ValueError, match="nothing to learn"):
        learn([Group(np.ones((3, 2, 4)), np.full(3, np.inf), "t")], half_right)


def test_what_is_shipped_fits_this_version() -> None:
    scores = shipped(WIDE)(np.random.default_rng(0).uniform(0, 10, (100, 3, NUM_FEATURES)))
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0
