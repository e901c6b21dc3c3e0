"""Convolutions of channels in blocks, against those of plain data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.tensor import Tensor
from ansorlite.topi.blocked import blocked_conv
from ansorlite.topi.conv import conv


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def in_blocks(array: np.ndarray, block: int) -> np.ndarray:
    n, c, *rest = array.shape
    return np.moveaxis(array.reshape(n, c // block, block, *rest), 2, -1)


def evaluated(operator: Callable[..., Tensor], *arrays: np.ndarray) -> np.ndarray:
    tensors = [te.placeholder(array.shape) for array in arrays]
    return evaluate(ComputeDAG.of([*tensors, operator(*tensors)]), arrays)[0]


@pytest.mark.parametrize("source", [1, 2, 4], ids=["plain data", "blocks of 2", "blocks of 4"])
@pytest.mark.parametrize(
    ("channels", "weight", "options"),
    [
        (8, (12, 8, 1, 1), {}),
        (8, (4, 8, 3, 2), {"strides": (2, 1), "before": (1, 0), "after": (0, 1), "dilations": (1, 2)}),
        (8, (16, 4, 3, 3), {"groups": 2, "before": (1, 1), "after": (1, 1)}),
        (4, (8, 4, 3), {"strides": (2,)}),
        (4, (8, 4, 2, 2, 2), {}),
    ],
)
def test_a_convolution_is_that_of_plain_data(source, channels, weight, options):
    x, w = f32(2, channels, *(7,) * (len(weight) - 2)), f32(*weight, seed=1)
    expected = evaluated(lambda a, b: conv(a, b, **options), x, w)
    found = evaluated(lambda a, b: blocked_conv(a, b, block=4, **options), x if source == 1 else in_blocks(x, source), w)
    np.testing.assert_allclose(found, in_blocks(expected, 4), rtol=1e-4, atol=1e-4)


def test_depthwise():
    x, w = f32(1, 8, 5, 5), f32(8, 1, 3, 3, seed=1)
    options = {"groups": 8, "strides": (1, 2), "before": (1, 1), "after": (1, 1)}
    found = evaluated(lambda a, b: blocked_conv(a, b, block=4, **options), in_blocks(x, 4), w)
    np.testing.assert_allclose(found, in_blocks(evaluated(lambda a, b: conv(a, b, **options), x, w), 4), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("data", "weight", "groups", "message"),
    [
        ((1, 2, 5, 4), (8, 8, 3, 3), 1, "8 channels|2 channels"),
        ((1, 2, 5, 5, 4, 4), (8, 8, 3, 3), 1, "the weight's rank or one more"),
        ((1, 2, 5, 5, 4), (6, 8, 3, 3), 1, "no whole blocks"),
        ((1, 2, 5, 5, 4), (8, 4, 3, 3), 1, "do not fit together"),
        ((1, 2, 5, 5, 4), (8, 2, 3, 3), 4, "no whole blocks"),
        ((1, 8, 5, 5), (8, 4, 3, 3), 4, "do not fit together"),
        ((1, 4, 5, 5, 2), (8, 1, 3, 3), 8, "no whole blocks"),
    ],
)
def test_what_does_not_fit_is_told(data, weight, groups, message):
    with pytest.raises(ExpressionError, match=message):
        blocked_conv(te.placeholder(data), te.placeholder(weight), block=4, groups=groups)
