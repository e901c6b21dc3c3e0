"""A prior, right or wrong, blended with what is measured."""

import numpy as np
import pytest

from ansorlite.cost_model import GBDT, BlendedModel, Group, Prior, pairwise_accuracy
from ansorlite.cost_model.blend import Calibration

from .synthetic import programs


def half_right(features: np.ndarray) -> np.ndarray:
    """Sees one of the three terms, and off by a factor."""
    return 3.0 + 1.7 * np.tanh(features[..., 0]).sum(axis=1)


def noise(features: np.ndarray) -> np.ndarray:
    return np.sin(1e3 * features.sum(axis=(1, 2)))


def reversed_(features: np.ndarray) -> np.ndarray:
    return -half_right(features)


TEST = programs(400, 3, np.random.default_rng(100))


def accuracy(prior: Prior | None, n: int, seed: int) -> float:
    model = GBDT() if prior is None else BlendedModel(prior, GBDT())
    model.fit([programs(n, 3, np.random.default_rng(seed))] if n else [])
    return pairwise_accuracy(model.predict(TEST.features), TEST.latencies)


def test_before_any_measurement_the_prior_ranks() -> None:
    model = BlendedModel(half_right, GBDT())
    order = np.argsort(half_right(TEST.features))
    np.testing.assert_array_equal(np.argsort(model.predict(TEST.features)), order)
    assert accuracy(half_right, 0, 0) > 0.7
    model.fit([Group(TEST.features, np.full(400, np.inf))])  # all failed: nothing is known yet
    np.testing.assert_array_equal(np.argsort(model.predict(TEST.features)), order)


@pytest.mark.parametrize(("n", "better"), [(8, 0.1), (32, 0.05), (512, 0.0)])
def test_the_blend_beats_the_trees_alone(n: int, better: float) -> None:
    blended, trees = (np.mean([accuracy(prior, n, seed) for seed in range(3)]) for prior in (half_right, None))
    assert blended > trees + better


def test_the_blend_improves_on_the_prior_among_the_fast() -> None:
    """The slow have hardly any weight, so that there the prior's opinion may well stay the better one."""
    fast = np.argsort(TEST.latencies)[:130]
    model = BlendedModel(half_right, GBDT())
    before = pairwise_accuracy(model.predict(TEST.features[fast]), TEST.latencies[fast])
    model.fit([programs(1500, 3, np.random.default_rng(0))])
    assert pairwise_accuracy(model.predict(TEST.features[fast]), TEST.latencies[fast]) > before + 0.05


@pytest.mark.parametrize("prior", [noise, reversed_])
def test_a_prior_that_is_wrong_is_overruled(prior: Prior) -> None:
    assert accuracy(prior, 512, 0) > accuracy(None, 512, 0) - 0.02


def test_calibration_finds_slope_and_offset_of_each_task() -> None:
    rng = np.random.default_rng(0)
    features = np.zeros((200, 1, 1))
    x, z = rng.normal(size=200), rng.normal(size=200)
    groups = [
        Group(features, np.exp(-(2 * x + 5)), "a"),
        Group(features, np.exp(-(2 * z - 3)), "b"),
        Group(features[:2], np.asarray([np.inf, np.inf]), "c"),
    ]
    found = Calibration.of(groups, [x, z, np.zeros(2)])
    assert found.slope == pytest.approx(2, abs=0.05)
    assert found.offsets["a"] == pytest.approx(5, abs=0.05)
    assert found.offsets["b"] == pytest.approx(-3, abs=0.05)
    assert "c" not in found.offsets
    best = found.throughput(x, "a").max()
    assert best == pytest.approx(1, abs=0.2)
    order = np.argsort(x)
    assert (np.diff(found.throughput(x[order], "a")) > 0).all()


def test_calibration_on_one_program_believes_the_slope() -> None:
    found = Calibration.of([Group(np.zeros((1, 1, 1)), np.asarray([0.5]))], [np.asarray([7.0])])
    assert found.slope == 1
    assert found.throughput(np.asarray([7.0]), "")[0] == pytest.approx(1)
