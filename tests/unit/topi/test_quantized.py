"""Quantised operators against the same arithmetic in numpy, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.topi import quantized
from ansorlite.topi.einsum import einsum
from ansorlite.topi.resample import resample
from tests.unit.topi.support import meaning, normal

_RNG = np.random.default_rng(0)


def _small(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return _RNG.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_quantize_rounds_to_even_and_saturates(dtype):
    info = np.iinfo(dtype)
    x = np.concatenate([np.arange(-3, 3, 0.25), [1e9, -1e9, np.inf, -np.inf]]).astype(np.float32)
    zero = np.asarray(info.max // 2).astype(dtype)
    expected = np.clip(np.rint(x / np.float32(0.5)) + zero.astype(np.float32), info.min, info.max).astype(dtype)
    np.testing.assert_array_equal(meaning(quantized.quantize, x, np.float32(0.5), zero, dtype=dtype), expected)


def test_quantize_and_dequantize_by_channel_and_by_block():
    x, scale, zero = normal(3, 4), np.array([0.1, 0.2, 0.3, 0.4], np.float32), _small("int8", 4)
    found = meaning(quantized.quantize, x, scale, zero, dtype="int8", axis=1)
    expected = np.clip(np.rint(x / scale) + zero.astype(np.float32), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(found, expected)
    back = meaning(quantized.dequantize, found, scale, zero, axis=1)
    np.testing.assert_array_equal(back, (found.astype(np.int32) - zero).astype(np.float32) * scale)
    blocks = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], np.float32)
    by_block = meaning(quantized.dequantize, found, blocks, axis=1, block=2)
    np.testing.assert_array_equal(by_block, found.astype(np.float32) * blocks.repeat(2, axis=1))


@pytest.mark.parametrize("known", [{}, {"apart": True}, {"apart": True, "most": 400}], ids=["", "apart", "small"])
@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
def test_integer_products(dtypes, known):
    a, b = _small(dtypes[0], 2, 5, 7), _small(dtypes[1], 7, 3)
    for a_zero, b_zero in ((_small(dtypes[0])[()], _small(dtypes[1], 3)), (_small(dtypes[0], 5), _small(dtypes[1], 1))):
        expected = (a.astype(np.int32) - a_zero.astype(np.int32).reshape(-1, 1)) @ (b.astype(np.int32) - b_zero)
        np.testing.assert_array_equal(meaning(quantized.integer_matmul, a, b, np.asarray(a_zero), b_zero, **known), expected)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(meaning(quantized.integer_matmul, a, b, **known), expected)


@pytest.mark.parametrize(("left", "right"), [((7,), (7,)), ((7,), (7, 3)), ((4, 7), (7,)), ((2, 1, 4, 7), (5, 7, 3))])
def test_zero_points_are_taken_off_apart_whatever_the_ranks(left, right):
    a, b, zero = _small("uint8", *left), _small("int8", *right), _small("uint8")
    expected = np.matmul(a.astype(np.int32) - zero.astype(np.int32), b.astype(np.int32))
    np.testing.assert_array_equal(meaning(quantized.integer_matmul, a, b, zero, apart=True), expected)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("known", [{}, {"apart": True}, {"apart": True, "most": 200}], ids=["", "apart", "small"])
def test_the_border_of_an_integer_convolution_is_the_zero_point(known, groups):
    x, weight, zeros = _small("uint8", 1, 4, 5, 5), _small("int8", 8, 4 // groups, 3, 3), _small("int8", 8) // 2
    found = meaning(
        quantized.integer_conv, x, weight, zeros, zero=7, groups=groups, before=(1, 1), after=(1, 1), strides=(2, 1), **known
    )
    wide = np.pad(x.astype(np.int32) - 7, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))[:, :, ::2]
    taps = weight.astype(np.int32) - zeros.reshape(-1, 1, 1, 1)
    parts = [
        np.einsum("nchwij,ocij->nohw", part, own)
        for part, own in zip(np.split(windows, groups, axis=1), np.split(taps, groups), strict=True)
    ]
    np.testing.assert_array_equal(found, np.concatenate(parts, axis=1))


@pytest.mark.parametrize("blocked", [False, True], ids=["plain data", "data in blocks"])
@pytest.mark.parametrize("known", [{}, {"apart": True, "most": 200}], ids=["", "apart"])
def test_an_integer_convolution_in_blocks_is_that_of_plain_data(known, blocked):
    x, weight, zeros = _small("uint8", 1, 8, 5, 5), _small("int8", 8, 8, 3, 3), _small("int8", 8) // 2
    given = {"zero": 7, "before": (1, 1), "after": (0, 1), "strides": (2, 1), **known}
    plain = meaning(quantized.integer_conv, x, weight, zeros, **given)
    data = np.moveaxis(x.reshape(1, 2, 4, 5, 5), 2, -1) if blocked else x
    found = meaning(quantized.integer_conv, np.ascontiguousarray(data), weight, zeros, block=2, **given)
    np.testing.assert_array_equal(np.moveaxis(found, -1, 2).reshape(plain.shape), plain)


def test_requantize():
    total = _RNG.integers(-(10**6), 10**6, (2, 4)).astype(np.int32)
    factor, zero = np.array([1e-4, 2e-4, 1e-3, 5e-5], np.float32), np.asarray(3, np.int8)
    expected = np.clip(np.rint(total.astype(np.float32) * factor) + 3, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(meaning(quantized.requantize, total, factor, zero, axis=1), expected)


def test_a_scale_that_does_not_fit_is_refused():
    with pytest.raises(ExpressionError, match=r"shape \(3,\) does not fit"):
        quantized.quantize(te.placeholder((2, 4)), te.placeholder((3,)), dtype="int8", axis=1)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bkj->bik", "ij->ji", "ii->i", "ij->", "i,j->ij", "ab,bc,cd->da"])
def test_einsum(equation):
    inputs, output = equation.split("->")
    terms = tuple(inputs.split(","))
    sizes = dict(zip("abcdijk", (2, 3, 4, 5, 3, 3, 2), strict=True))
    arrays = [normal(*(sizes[x] for x in term), seed=n) for n, term in enumerate(terms)]
    np.testing.assert_allclose(meaning(einsum, *arrays, inputs=terms, output=output), np.einsum(equation, *arrays), rtol=1e-5)


def test_einsum_refuses_extents_that_differ():
    with pytest.raises(ExpressionError, match="'j' has the extents 3 and 4"):
        einsum(te.placeholder((2, 3)), te.placeholder((4, 2)), inputs=("ij", "jk"), output="ik")


def test_resample_is_a_sum_of_taps():
    x, sources = normal(2, 5), np.array([[0, 1], [3, 3], [4, 0]])
    weights = normal(3, 2, seed=1)
    np.testing.assert_allclose(meaning(resample, x, sources, weights, axis=1), (x[:, sources] * weights).sum(-1), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_requantized_reals_are_dequantised_bytes(dtype):
    total, factor, scale = _RNG.integers(-40_000, 40_000, (3, 5)).astype(np.int32), np.float32(0.004), np.float32(0.3)
    zero = _small(dtype)
    stored = meaning(quantized.requantize, total, factor, zero, axis=0)
    expected = meaning(quantized.dequantize, stored, scale, zero)
    np.testing.assert_array_equal(meaning(quantized.requantize_real, total, factor, zero, zero, scale, axis=0), expected)


def test_saturate_quantises_what_is_in_quanta():
    x, zero = (normal(3, 4) * 200).astype(np.float32), np.uint8(100)
    np.testing.assert_array_equal(meaning(quantized.saturate, x, zero), np.clip(np.rint(x) + 100, 0, 255).astype(np.uint8))


def test_integer_sums_take_the_zero_point_off_each_element():
    x = _small("uint8", 2, 3, 6, 6)
    shifted = x.astype(np.int32) - 9
    np.testing.assert_array_equal(meaning(quantized.integer_sum, x, zero=9, axes=(2, 3)), shifted.sum(axis=(2, 3)))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(shifted, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    found = meaning(quantized.integer_window_sum, x, zero=9, kernel=(3, 3), before=(1, 1), after=(1, 1))
    np.testing.assert_array_equal(found, windows.sum(axis=(4, 5)))
