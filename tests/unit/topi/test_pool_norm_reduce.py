"""Pooling, normalisation, softmax and reductions against the ONNX reference."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.topi import norm, pooling, reduction, softmax
from tests.unit.topi.support import meaning, normal, onnx_meaning

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
WINDOWS = [
    ((2, 3, 9, 8), (2, 2), (2, 2), (0, 0), (0, 0), (1, 1), False),
    ((1, 2, 9, 8), (3, 2), (2, 1), (1, 0), (1, 1), (1, 1), False),
    ((1, 2, 9, 8), (3, 3), (2, 2), (0, 0), (0, 0), (1, 1), True),
    ((1, 2, 10, 8), (3, 3), (2, 3), (1, 1), (1, 1), (1, 1), True),
    ((1, 2, 11, 9), (2, 3), (1, 2), (1, 0), (0, 1), (2, 2), False),
    ((1, 2, 7), (3,), (2,), (1,), (1,), (1,), False),
    ((1, 2, 5, 6, 4), (2, 2, 2), (1, 2, 1), (0, 0, 0), (0, 0, 0), (1, 1, 1), False),
]


@pytest.mark.parametrize(("data", "kernel", "strides", "before", "after", "dilations", "ceil_mode"), WINDOWS)
def test_max_pool(data, kernel, strides, before, after, dilations, ceil_mode):
    x = normal(*data) - np.float32(5)
    result = meaning(
        pooling.max_pool, x, kernel=kernel, strides=strides, before=before, after=after, dilations=dilations, ceil_mode=ceil_mode
    )
    pads = [*before, *after]
    expected = onnx_meaning(
        "MaxPool", x, kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations, ceil_mode=int(ceil_mode)
    )
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("data", "kernel", "strides", "before", "after", "dilations", "ceil_mode"), WINDOWS)
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_average_pool(data, kernel, strides, before, after, dilations, ceil_mode, count_include_pad):
    x = normal(*data)
    result = meaning(
        pooling.average_pool,
        x,
        kernel=kernel,
        strides=strides,
        before=before,
        after=after,
        dilations=dilations,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )
    expected = _average(x, kernel, strides, before, after, dilations, result.shape[2:], count_include_pad)
    np.testing.assert_allclose(result, expected, **CLOSE)


def _average(x, kernel, strides, before, after, dilations, outputs, include_pad):
    """Window by window: the mean of the elements that are data, or data and declared border."""
    result = np.empty((*x.shape[:2], *outputs))
    for place in np.ndindex(*outputs):
        taps, count = [], 0
        for tap in np.ndindex(*kernel):
            at = [p * s - b + t * d for p, s, b, t, d in zip(place, strides, before, tap, dilations, strict=True)]
            if all(0 <= a < e for a, e in zip(at, x.shape[2:], strict=True)):
                taps.append(x[(slice(None), slice(None), *at)])
            count += all(-b <= a < e + f for a, e, b, f in zip(at, x.shape[2:], before, after, strict=True))
        result[(slice(None), slice(None), *place)] = np.sum(taps, axis=0) / (count if include_pad else len(taps))
    return result


def test_ceil_mode_drops_a_window_that_begins_in_the_border():
    x = te.placeholder((1, 1, 4, 4))
    assert pooling.max_pool(x, kernel=(1, 1), strides=(3, 3), before=(0, 0), after=(2, 2), ceil_mode=True).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("column_major", [False, True])
@pytest.mark.parametrize(("data", "kernel", "strides", "before", "after", "dilations", "ceil_mode"), WINDOWS)
def test_places_of_the_largest(data, kernel, strides, before, after, dilations, ceil_mode, column_major):
    """Of few different integers, the lowest of all among them, which is what the border is filled with."""
    x = np.random.default_rng(0).choice(np.array([-128, -128, 3, 4], np.int8), data)
    slide = {
        "kernel": kernel, "strides": strides, "before": before, "after": after, "dilations": dilations, "ceil_mode": ceil_mode
    }  # fmt: skip
    largest = meaning(pooling.max_pool, x, **slide)
    found = meaning(pooling.max_pool_places, x, largest, **slide, column_major=column_major)
    for n, c, *place in np.ndindex(*largest.shape):
        at = [
            tuple(p * s - b + t * d for p, s, b, t, d in zip(place, strides, before, tap, dilations, strict=True))
            for tap in np.ndindex(*kernel)
        ]
        inside = [p for p in at if all(0 <= i < e for i, e in zip(p, data[2:], strict=True))]
        first = max(inside, key=lambda p, image=x[n, c]: (image[p], -inside.index(p)))
        own = np.ravel_multi_index(first, data[2:], order="F" if column_major else "C")
        assert found[(n, c, *place)] == (n * data[1] + c) * np.prod(data[2:]) + own


def test_ceil_mode_counts_a_window_larger_than_the_data():
    """By ONNX, ``ceil((5 - 7) / 4) + 1``."""
    x = normal(1, 2, 5)
    result = meaning(pooling.max_pool, x, kernel=(4,), strides=(4,), dilations=(2,), ceil_mode=True)
    np.testing.assert_array_equal(result, x[:, :, ::2].max(axis=2, keepdims=True))
    with pytest.raises(ExpressionError, match="does not fit"):
        meaning(pooling.max_pool, x, kernel=(4,), strides=(4,), dilations=(2,))


def test_global_pooling():
    x = normal(2, 3, 4, 5)
    np.testing.assert_allclose(meaning(pooling.global_average_pool, x), x.mean(axis=(2, 3), keepdims=True), **CLOSE)
    np.testing.assert_array_equal(meaning(pooling.global_max_pool, x), x.max(axis=(2, 3), keepdims=True))


@pytest.mark.parametrize("axes", [(-1,), (1,), (1, 2), (0,)])
def test_softmax(axes):
    x = normal(3, 4, 5) * np.float32(30)
    shifted = np.exp(x - x.max(axis=axes, keepdims=True))
    expected = shifted / shifted.sum(axis=axes, keepdims=True)
    np.testing.assert_allclose(meaning(softmax.softmax, x, axes=axes), expected, **CLOSE)
    logarithm = meaning(softmax.log_softmax, x, axes=axes)
    np.testing.assert_allclose(np.exp(logarithm), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [None, (0,), (1, -1), ()])
@pytest.mark.parametrize(
    ("operator", "onnx_name"),
    [
        (reduction.reduce_sum, "ReduceSum"),
        (reduction.reduce_prod, "ReduceProd"),
        (reduction.reduce_max, "ReduceMax"),
        (reduction.reduce_min, "ReduceMin"),
        (reduction.reduce_mean, "ReduceMean"),
        (reduction.reduce_l1, "ReduceL1"),
        (reduction.reduce_l2, "ReduceL2"),
        (reduction.reduce_sum_square, "ReduceSumSquare"),
        (reduction.reduce_log_sum_exp, "ReduceLogSumExp"),
    ],
)
def test_reductions(operator, onnx_name, axes, keepdims):
    x = normal(2, 3, 4)
    result = meaning(operator, x, axes=axes, keepdims=keepdims)
    given = () if axes is None else (np.array(axes, np.int64),)
    attributes = {"keepdims": int(keepdims), "noop_with_empty_axes": 1 if axes == () else 0}
    if axes == ():
        # The reference leaves some of these undecided; over no axes, a fold of one element is the element's prologue.
        prologue = {"ReduceL1": np.abs, "ReduceL2": np.abs, "ReduceSumSquare": np.square}.get(onnx_name, lambda v: v)
        np.testing.assert_allclose(result, prologue(x), **CLOSE)
        return
    np.testing.assert_allclose(result, onnx_meaning(onnx_name, x, *given, opset=18, **attributes), **CLOSE)


def test_mean_of_integers_keeps_their_dtype():
    assert meaning(reduction.reduce_mean, np.array([[1, 2], [3, 5]], np.int32), axes=(1,)).dtype == np.int32


def test_axes_out_of_range_are_refused():
    with pytest.raises(ExpressionError, match="not all among the 2 dimensions"):
        reduction.reduce_sum(te.placeholder((2, 3)), axes=(2,))
    with pytest.raises(ExpressionError, match="twice"):
        reduction.reduce_sum(te.placeholder((2, 3)), axes=(1, -1))


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_lrn(size):
    x = normal(2, 7, 3, 3)
    attributes = {"size": size, "alpha": 0.2, "beta": 0.6, "bias": 1.5}
    squares = np.empty(x.shape)
    for c in range(7):
        squares[:, c] = np.square(x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]).sum(axis=1)
    expected = x / (1.5 + 0.2 / size * squares) ** 0.6
    np.testing.assert_allclose(meaning(norm.lrn, x, **attributes), expected, **CLOSE)


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("spatial", [(), (3,), (2, 3)])
def test_blocked_lrn(size, spatial):
    x = normal(2, 8, *spatial)
    attributes = {"size": size, "alpha": 0.2, "beta": 0.6, "bias": 1.5}
    places = range(3, 3 + len(spatial))
    blocks = np.ascontiguousarray(x.reshape(2, 2, 4, *spatial).transpose(0, 1, *places, 2))
    found = meaning(norm.blocked_lrn, blocks, **attributes)
    in_order = np.moveaxis(found, -1, 2).reshape(x.shape)
    np.testing.assert_allclose(in_order, meaning(norm.lrn, x, **attributes), **CLOSE)


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm_and_rms_norm(axis):
    x = normal(2, 3, 4)
    scale = normal(*x.shape[axis:], seed=1)
    expected = onnx_meaning("LayerNormalization", x, scale, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(meaning(norm.layer_norm, x, scale, axis=axis, epsilon=1e-3), expected, rtol=1e-4, atol=1e-5)
    axes = tuple(range(axis % 3, 3))
    root = np.sqrt(np.mean(x.astype(np.float64) ** 2, axis=axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(meaning(norm.rms_norm, x, scale, axis=axis, epsilon=1e-3), x / root * scale, **CLOSE)


def test_instance_norm():
    x, scale, bias = normal(2, 3, 4, 5), normal(3, seed=1), normal(3, seed=2)
    expected = onnx_meaning("InstanceNormalization", x, scale, bias, epsilon=1e-3)
    np.testing.assert_allclose(meaning(norm.instance_norm, x, scale, bias, epsilon=1e-3), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalize(p):
    x = normal(3, 4)
    expected = x / np.linalg.norm(x, ord=p, axis=1, keepdims=True)
    np.testing.assert_allclose(meaning(norm.lp_normalize, x, axis=1, p=p), expected, **CLOSE)


def test_batch_norm_as_scale_and_shift():
    x, gamma, beta, mean = normal(2, 3, 4, 5), *(normal(3, seed=n) for n in (1, 2, 3))
    variance = np.abs(normal(3, seed=4)) + np.float32(0.1)
    scale = meaning(norm.batch_norm_scale, gamma, variance, epsilon=1e-3, rank=4)
    shift = meaning(norm.batch_norm_shift, beta, mean, scale)
    expected = onnx_meaning("BatchNormalization", x, gamma, beta, mean, variance, epsilon=1e-3)
    np.testing.assert_allclose(x * scale + shift, expected, rtol=1e-4, atol=1e-5)
