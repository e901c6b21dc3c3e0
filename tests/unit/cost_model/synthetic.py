"""Programs whose latency is known: minus its logarithm is a sum, over statements, of a function of their features."""

import numpy as np

from ansorlite.cost_model import Group

FEATURES = 24


def speed(features: np.ndarray) -> np.ndarray:
    """``(n, statements)``: what each statement adds to minus the logarithm of the latency."""
    a, b, c, d = (features[..., i] for i in range(4))
    return np.tanh(a) + 0.5 * b * (c > 0) + 0.3 * np.abs(d)


def programs(n: int, statements: int, rng: np.random.Generator, task: str = "") -> Group:
    features = np.round(rng.normal(size=(n, statements, FEATURES)), 2)
    return Group(features, 1e-3 * np.exp(-speed(features).sum(axis=1)), task)
