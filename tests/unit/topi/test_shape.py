"""Operators that move elements, against numpy."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.topi import shape
from ansorlite.topi.padding import PadMode, pad
from tests.unit.topi.support import meaning, normal


@pytest.mark.parametrize(("before", "after"), [((2, 6), (3, 4)), ((2, 3, 8), (48,)), ((6, 1), (1, 2, 3, 1)), ((1,), ())])
def test_reshape(before, after):
    x = normal(*before)
    np.testing.assert_array_equal(meaning(shape.reshape, x, shape=after), x.reshape(after))


def test_reshape_refuses_another_number_of_elements():
    with pytest.raises(ExpressionError, match="another number of elements"):
        shape.reshape(te.placeholder((2, 3)), shape=(4,))


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_transpose(axes):
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(meaning(shape.transpose, x, axes=axes), x.transpose(axes))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    parts = [normal(*(n if d == axis % 3 else 3 for d in range(3)), seed=n) for n in (1, 2, 4)]
    np.testing.assert_array_equal(meaning(shape.concat, *parts, axis=axis), np.concatenate(parts, axis=axis))


def test_concat_refuses_other_dimensions_that_differ():
    with pytest.raises(ExpressionError, match="differ in another dimension"):
        shape.concat(te.placeholder((2, 3)), te.placeholder((3, 3)), axis=1)


def test_strided_slice():
    x = normal(6, 7)
    result = meaning(shape.strided_slice, x, starts=(1, 6), counts=(3, 4), steps=(2, -2))
    np.testing.assert_array_equal(result, x[1:6:2, 6::-2])
    with pytest.raises(ExpressionError, match="not inside"):
        shape.strided_slice(te.placeholder((6,)), starts=(3,), counts=(4,), steps=(1,))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    x, indices = normal(4, 5), np.array([[0, -1], [2, 1]], np.int64)
    np.testing.assert_array_equal(meaning(shape.gather, x, indices, axis=axis), np.take(x, indices, axis=axis))


def test_tile_and_broadcast():
    x = normal(2, 1, 3)
    np.testing.assert_array_equal(meaning(shape.tile, x, repeats=(2, 3, 1)), np.tile(x, (2, 3, 1)))
    np.testing.assert_array_equal(meaning(shape.broadcast_to, x, shape=(4, 1)), np.broadcast_to(x, (2, 4, 3)))


@pytest.mark.parametrize("mode", list(PadMode))
@pytest.mark.parametrize(("before", "after"), [((1, 2), (2, 0)), ((0, 3), (0, 3)), ((0, 0), (0, 1))])
def test_pad(mode, before, after):
    x = normal(4, 5)
    extra = {"constant_values": 7} if mode is PadMode.CONSTANT else {}
    expected = np.pad(x, list(zip(before, after, strict=True)), mode=mode.value, **extra)
    np.testing.assert_array_equal(meaning(pad, x, before=before, after=after, value=7, mode=mode), expected)


def test_negative_pads_cut_off():
    x = normal(4, 5)
    expected = np.pad(x[1:, :3], ((0, 1), (0, 0)))
    np.testing.assert_array_equal(meaning(pad, x, before=(-1, 0), after=(1, -2)), expected)


def test_nothing_to_pad_is_the_tensor_itself():
    x = te.placeholder((3, 4))
    assert pad(x, before=(0, 0), after=(0, 0)) is x
