"""Operators that take elements from, or put them to, places named by tensors: against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.topi import arguments, bits, indexing, patterns
from ansorlite.topi.indexing import Scatter
from tests.unit.topi.support import meaning, normal

_UFUNCS = {Scatter.ADD: np.add, Scatter.MULTIPLY: np.multiply, Scatter.MAXIMUM: np.maximum, Scatter.MINIMUM: np.minimum}


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis):
    x = normal(4, 5)
    indices = np.random.default_rng(0).integers(-4, 4, (4, 5))
    np.testing.assert_array_equal(
        meaning(indexing.gather_elements, x, indices, axis=axis), np.take_along_axis(x, indices % x.shape[axis], axis=axis)
    )


def test_gather_nd_with_batch_dimensions():
    x, indices = normal(2, 3, 4, 5), np.array([[[0, 1], [-1, -1]], [[2, 0], [1, 3]]])
    expected = np.stack([np.stack([x[b, i, j] for i, j in indices[b]]) for b in range(2)])
    np.testing.assert_array_equal(meaning(indexing.gather_nd, x, indices, batch_dims=1), expected)


@pytest.mark.parametrize("mode", list(Scatter))
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_scatter_elements(mode, dtype):
    rng = np.random.default_rng(0)
    x, updates = (rng.integers(1, 9, shape).astype(dtype) for shape in ((4, 6), (3, 5)))
    # Replacements do not meet; what is combined does, and some indices count from the end.
    rows = np.stack([rng.permutation(6)[:5] for _ in range(3)]) if mode is Scatter.REPLACE else rng.integers(0, 6, (3, 5))
    expected = x.copy()
    for (r, c), index in np.ndenumerate(rows):
        combine = _UFUNCS.get(mode, lambda _, new: new)
        expected[r, index] = combine(expected[r, index], updates[r, c])
    indices = np.where(rng.random(rows.shape) < 0.5, rows - 6, rows)
    np.testing.assert_array_equal(meaning(indexing.scatter_elements, x, indices, updates, axis=1, mode=mode), expected)


@pytest.mark.parametrize("mode", list(Scatter))
def test_scatter_nd(mode):
    x, updates = normal(4, 5, 3), normal(6, 3, seed=1)
    indices = np.array([[0, 0], [3, 4], [1, 2], [-1, 0], [2, -2], [0, 1]])
    if mode is not Scatter.REPLACE:
        indices[5] = [0, 0]
    expected = x.copy()
    for index, update in zip(indices, updates, strict=True):
        combine = _UFUNCS.get(mode, lambda _, new: new)
        expected[tuple(index)] = combine(expected[tuple(index)], update)
    np.testing.assert_allclose(meaning(indexing.scatter_nd, x, indices, updates, mode=mode), expected, rtol=1e-6)


@pytest.mark.parametrize("mode", list(Scatter))
@pytest.mark.parametrize(("start", "step"), [(0, 1), (2, 1), (1, 3)])
def test_scatter_to_places_that_are_known(start, step, mode):
    x, updates = normal(4, 9, 2), normal(4, 3, 2, seed=1)
    combine = _UFUNCS.get(mode, lambda _, new: new)
    expected, slices = x.copy(), (slice(None), slice(start, start + 3 * step, step))
    expected[slices] = combine(x[slices], updates)
    found = meaning(indexing.slice_scatter, x, updates, axis=1, start=start, step=step, mode=mode)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    table = np.full(9, -1)
    table[[start, start + step, start + 2 * step]] = 0, 1, 2
    np.testing.assert_array_equal(meaning(indexing.table_scatter, x, updates, table, axis=1, mode=mode), found)


@pytest.mark.parametrize(
    ("shape", "axis", "start", "step"),
    [((4, 3), 1, 2, 1), ((4, 2), 1, 0, 4), ((3, 2), 1, 0, 1), ((4,), 0, 0, 1), ((4, 2), 1, -1, 1)],
)
def test_a_slice_that_does_not_fit(shape, axis, start, step):
    with pytest.raises(ExpressionError, match="does not fit into"):
        indexing.slice_scatter(te.placeholder((4, 4)), te.placeholder(shape), axis=axis, start=start, step=step)


def test_a_table_that_does_not_fit():
    with pytest.raises(ExpressionError, match="do not fit"):
        indexing.table_scatter(te.placeholder((4, 4)), te.placeholder((2, 4)), te.placeholder((3,), "int64"), axis=0)


def test_of_several_replacements_the_last_one_stays():
    x, indices, updates = np.zeros(3, np.float32), np.array([1, 1, 1]), np.array([5, 6, 7], np.float32)
    np.testing.assert_array_equal(meaning(indexing.scatter_elements, x, indices, updates), [0, 7, 0])


def test_reverse_sequence():
    x = normal(4, 3)
    result = meaning(indexing.reverse_sequence, x, np.array([1, 4, 2]))
    np.testing.assert_array_equal(result, np.stack([x[:, 0], x[::-1, 1], x[[1, 0, 2, 3], 2]], axis=1))


@pytest.mark.parametrize(("operator", "numpy"), [(arguments.arg_max, np.argmax), (arguments.arg_min, np.argmin)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_arguments_of_extremes(operator, numpy, keepdims):
    x = np.random.default_rng(0).integers(0, 4, (5, 7)).astype(np.float32)
    np.testing.assert_array_equal(meaning(operator, x, axis=1, keepdims=keepdims), numpy(x, axis=1, keepdims=keepdims))
    backwards = x.shape[1] - 1 - numpy(x[:, ::-1], axis=1, keepdims=keepdims)
    np.testing.assert_array_equal(meaning(operator, x, axis=1, keepdims=keepdims, last=True), backwards)
    x[2, 3] = np.nan
    assert meaning(operator, x, axis=1, keepdims=False)[2] == 3


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_top_places(dtype, axis, largest):
    x = np.random.default_rng(0).integers(-3, 4, (5, 6, 7)).astype(dtype)
    if dtype == "float32":
        x[1, 2, 3] = x[4, 2, 3] = x[1, 2, 6] = np.nan
        x[2, 2] = [np.inf, -np.inf, np.inf, -0.0, 0.0, -np.inf, 2]
    # numpy sorts NaN to the end. Of equal ones the last goes last: the other way round, that is the first.
    order = np.argsort(np.flip(x, axis) if largest else x, axis=axis, kind="stable")
    expected = (x.shape[axis] - 1 - np.flip(order, axis) if largest else order).take(range(4), axis=axis)
    found = meaning(arguments.top_places, x, count=4, axis=axis, largest=largest)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)


def test_more_places_than_there_are():
    with pytest.raises(ExpressionError, match="has 3 elements, and 4 of them"):
        arguments.top_places(te.placeholder((2, 3)), count=4)


def test_hardmax():
    x = np.array([[1, 3, 3, 2], [0, -1, -5, 0]], np.float32)
    np.testing.assert_array_equal(meaning(arguments.hardmax, x), [[0, 1, 0, 0], [1, 0, 0, 0]])


@pytest.mark.parametrize("offset", [-2, 0, 1, 9])
def test_triangles(offset):
    x = normal(2, 4, 5)
    np.testing.assert_array_equal(meaning(patterns.triangle, x, upper=True, offset=offset), np.triu(x, offset))
    np.testing.assert_array_equal(meaning(patterns.triangle, x, upper=False, offset=offset), np.tril(x, offset))


def test_one_hot_and_arange():
    hot = meaning(patterns.one_hot, np.array([1, -1, 7]), np.array([2, 5], np.int32), depth=3, axis=0)
    np.testing.assert_array_equal(hot, [[2, 2, 2], [5, 2, 2], [2, 5, 2]])
    steps = meaning(patterns.arange, np.float32(1), np.float32(-0.5), count=4)
    np.testing.assert_array_equal(steps, np.arange(1, -1, -0.5, np.float32))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_running_folds(dtype):
    x = np.random.default_rng(0).integers(1, 4, (3, 5)).astype(dtype)
    np.testing.assert_array_equal(meaning(patterns.cumulative_sum, x, axis=1), x.cumsum(axis=1))
    exclusive = meaning(patterns.cumulative_sum, x, axis=1, exclusive=True)
    np.testing.assert_array_equal(exclusive, x.cumsum(axis=1) - x)
    reverse = meaning(patterns.cumulative_product, x, axis=0, reverse=True)
    np.testing.assert_array_equal(reverse, x[::-1].cumprod(axis=0)[::-1])


@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint64"])
def test_bits(dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 200, (3, 4)).astype(dtype) for _ in range(2))
    few = rng.integers(0, 8, (3, 4)).astype(dtype)
    np.testing.assert_array_equal(meaning(bits.bitwise_and, a, b), a & b)
    np.testing.assert_array_equal(meaning(bits.bitwise_or, a, b), a | b)
    np.testing.assert_array_equal(meaning(bits.bitwise_xor, a, b), a ^ b)
    np.testing.assert_array_equal(meaning(bits.bitwise_not, a), ~a)
    np.testing.assert_array_equal(meaning(bits.shift_left, a, few), a << few)
    np.testing.assert_array_equal(meaning(bits.shift_right, a, few), a >> few)


def test_what_does_not_fit_is_refused():
    x, i = te.placeholder((3, 4)), te.placeholder((2,), "int64")
    for operator, more in ((indexing.gather_elements, []), (indexing.scatter_elements, [x]), (indexing.scatter_nd, [x])):
        with pytest.raises(ExpressionError, match=r"scatter|gather"):
            operator(x, i, *more)
    with pytest.raises(ExpressionError, match="gather_nd"):
        indexing.gather_nd(x, te.placeholder((2, 3), "int64"))
