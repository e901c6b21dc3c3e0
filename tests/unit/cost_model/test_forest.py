"""The compiled forest against LightGBM's own predictions."""

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.cost_model.forest import Forest


def trained(x: np.ndarray, y: np.ndarray, trees: int, leaves: int, seed: int) -> lightgbm.Booster:
    parameters = {
        "num_threads": 1,
        "num_leaves": leaves,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "feature_fraction": 0.7,
        "use_missing": False,
        "seed": seed,
        "verbose": -1,
    }
    return lightgbm.train(parameters, lightgbm.Dataset(x, y, params=parameters), num_boost_round=trees)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 70),
    statements=st.integers(1, 6),
    columns=st.integers(1, 9),
    trees=st.integers(1, 12),
    leaves=st.integers(2, 32),
    scale=st.sampled_from([1e-30, 1e-3, 1.0, 1e12]),
    layout=st.sampled_from(["programs first", "features first", "every second"]),
    seed=st.integers(0, 1000),
)
def test_equals_lightgbm(
    n: int, statements: int, columns: int, trees: int, leaves: int, scale: float, layout: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # Few distinct values, some a float32 apart, so that rows meet the thresholds exactly.
    values = np.repeat(rng.normal(size=12), 2)
    values[1::2] = np.nextafter(values[::2].astype(np.float32), np.float32(np.inf))
    values *= scale
    x = rng.choice(values, size=(200, columns)).astype(np.float32)
    booster = trained(x, rng.normal(size=200), trees, leaves, seed)
    forest = Forest.of(booster.model_to_string())
    features = rng.choice(values, size=(n, statements, columns)).astype(np.float32).astype(np.float64)
    expected = booster.predict(features.reshape(n * statements, columns), num_threads=1).reshape(n, statements).sum(axis=1)
    if layout == "features first":
        features = np.ascontiguousarray(features.transpose(1, 2, 0)).transpose(2, 0, 1)
    elif layout == "every second":
        features = np.repeat(np.repeat(features, 2, axis=0), 2, axis=2)[::2, :, ::2]
    np.testing.assert_allclose(forest.predict(features), expected, rtol=1e-12, atol=1e-12)


def test_a_feature_is_rounded_to_float32_like_in_training() -> None:
    x = np.asarray([[0.1], [0.2]] * 10, np.float32)
    booster = trained(x, x[:, 0], trees=1, leaves=2, seed=0)
    forest = Forest.of(booster.model_to_string())
    np.testing.assert_allclose(forest.predict(np.asarray([[[0.1]], [[0.2]]])), booster.predict(np.asarray([[0.1], [0.2]])))


def test_no_program_and_no_split() -> None:
    constant = trained(np.ones((30, 3), np.float32), np.full(30, 2.5), trees=2, leaves=4, seed=0)
    forest = Forest.of(constant.model_to_string())
    np.testing.assert_allclose(forest.predict(np.ones((5, 2, 3))), np.full(5, 2 * constant.predict(np.ones((1, 3)))[0]))
    assert forest.predict(np.ones((0, 2, 3))).shape == (0,)


def test_too_large_a_tree_is_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2)).astype(np.float32)
    with pytest.raises(ValueError, match="40 leaves"):
        Forest.of(trained(x, rng.normal(size=500), trees=1, leaves=40, seed=0).model_to_string())


def test_categorical_splits_and_missing_values_are_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, size=(400, 1)).astype(np.float32)
    y = np.asarray([3.0, -1.0, 2.0, 0.0])[x[:, 0].astype(int)]
    plain = {"num_threads": 1, "verbose": -1, "min_data_in_leaf": 1}
    categorical = lightgbm.train(plain, lightgbm.Dataset(x, y, categorical_feature=[0]), num_boost_round=1)
    with pytest.raises(ValueError, match="=="):
        Forest.of(categorical.model_to_string())
    x[::7] = np.nan
    missing = lightgbm.train(plain, lightgbm.Dataset(x, y), num_boost_round=1)
    with pytest.raises(ValueError, match="missing values as NaN"):
        Forest.of(missing.model_to_string())
