"""Element-wise operators against numpy and the ONNX reference."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.topi import activations, elementwise
from tests.unit.topi.support import meaning, normal, onnx_meaning

BINARY = [
    (elementwise.add, np.add),
    (elementwise.subtract, np.subtract),
    (elementwise.multiply, np.multiply),
    (elementwise.divide, np.divide),
    (elementwise.maximum, np.maximum),
    (elementwise.minimum, np.minimum),
    (elementwise.equal, np.equal),
    (elementwise.less, np.less),
    (elementwise.less_equal, np.less_equal),
    (elementwise.greater, np.greater),
    (elementwise.greater_equal, np.greater_equal),
]
SHAPES = [((3, 4), (3, 4)), ((2, 1, 4), (3, 1)), ((5,), ()), ((1, 1), (3, 2)), ((), ())]


@pytest.mark.parametrize(("operator", "expected"), BINARY)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_binary_operators_broadcast_as_numpy(operator, expected, left, right):
    a, b = normal(*left), normal(*right, seed=1)
    np.testing.assert_array_equal(meaning(operator, a, b), expected(a, b))


def test_integers_are_divided_toward_zero():
    a = np.array([7, -7, 7, -7, 6, -6, 0], np.int32)
    b = np.array([2, 2, -2, -2, 3, 3, 5], np.int32)
    np.testing.assert_array_equal(meaning(elementwise.divide, a, b), [3, -3, -3, 3, 2, -2, 0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_remainder_of_floats_is_exact(dtype):
    a = np.concatenate([normal(200) * 9, [0.0, -0.0, 4, -4, 5, -5, np.inf, 3]]).astype(dtype)
    b = np.concatenate([normal(200, seed=1), [1, 1, 2, -2, np.inf, np.inf, 2, 0]]).astype(dtype)
    with np.errstate(all="ignore"):
        found, expected = meaning(elementwise.remainder, a, b), np.fmod(a, b)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[a != 0], np.signbit(expected)[a != 0])


def test_erf_of_integers_is_an_integer():
    found = meaning(elementwise.erf, np.array([-7, -4, -3, 0, 3, 4, 30], np.int32))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [-1, -1, 0, 0, 0, 1, 1])


def test_power_keeps_the_dtype_of_its_base():
    result = meaning(elementwise.power, np.array([1, 2, 3], np.int32), np.array([2.0, 3.0, 2.0], np.float32))
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, [1, 8, 9])


def test_choice_logic_and_conversion():
    a, b = normal(3, 4), normal(4, seed=1)
    np.testing.assert_array_equal(meaning(elementwise.where, a > 0, a, b), np.where(a > 0, a, b))
    np.testing.assert_array_equal(meaning(elementwise.logical_and, a > 0, b > 0), (a > 0) & (b > 0))
    np.testing.assert_array_equal(meaning(elementwise.logical_or, a > 0, b > 0), (a > 0) | (b > 0))
    np.testing.assert_array_equal(meaning(elementwise.logical_xor, a > 0, b > 0), (a > 0) ^ (b > 0))
    np.testing.assert_array_equal(meaning(elementwise.logical_not, a > 0), ~(a > 0))
    np.testing.assert_array_equal(meaning(elementwise.cast, a * 9, dtype="int8"), (a * 9).astype(np.int8))
    np.testing.assert_array_equal(meaning(elementwise.cast, np.array([0.0, -2.5], np.float32), dtype="bool"), [False, True])


@pytest.mark.parametrize(("low", "high"), [(None, 0.5), (-0.5, None), (-0.5, 0.5), (None, None)])
def test_clip(low, high):
    x = normal(4, 5)
    np.testing.assert_array_equal(
        meaning(elementwise.clip, x, low=low, high=high), np.clip(x, low, high) if (low, high) != (None, None) else x
    )


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (elementwise.negative, np.negative),
        (elementwise.absolute, np.abs),
        (elementwise.sign, np.sign),
        (elementwise.reciprocal, np.reciprocal),
        (elementwise.exp, np.exp),
        (elementwise.tanh, np.tanh),
        (elementwise.floor, np.floor),
        (elementwise.ceil, np.ceil),
        (elementwise.round, np.rint),
        (elementwise.is_nan, np.isnan),
    ],
)
def test_unary_operators(operator, expected):
    x = np.append(normal(40) * 3, np.float32(np.nan)).astype(np.float32)
    np.testing.assert_allclose(meaning(operator, x), expected(x), rtol=1e-6)


def test_sign_of_unsigned_integers():
    np.testing.assert_array_equal(meaning(elementwise.sign, np.array([0, 3], np.uint8)), [0, 1])


def test_square_root_and_logarithm():
    x = np.abs(normal(20)) + np.float32(0.1)
    np.testing.assert_allclose(meaning(elementwise.sqrt, x), np.sqrt(x), rtol=1e-6)
    np.testing.assert_allclose(meaning(elementwise.log, x), np.log(x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("operator", "onnx_name", "attributes"),
    [
        (activations.relu, "Relu", {}),
        (activations.leaky_relu, "LeakyRelu", {"alpha": 0.1}),
        (activations.thresholded_relu, "ThresholdedRelu", {"alpha": 0.7}),
        (activations.elu, "Elu", {"alpha": 1.5}),
        (activations.selu, "Selu", {}),
        (activations.celu, "Celu", {"alpha": 2.0}),
        (activations.sigmoid, "Sigmoid", {}),
        (activations.hard_sigmoid, "HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        (activations.hard_swish, "HardSwish", {}),
        (activations.softplus, "Softplus", {}),
        (activations.softsign, "Softsign", {}),
        (activations.mish, "Mish", {}),
        (activations.gelu, "Gelu", {}),
        (elementwise.erf, "Erf", {}),
    ],
)
def test_activations_agree_with_onnx(operator, onnx_name, attributes):
    x = normal(50) * np.float32(3)
    np.testing.assert_allclose(meaning(operator, x, **attributes), onnx_meaning(onnx_name, x, **attributes), rtol=2e-6, atol=1e-6)


def test_gelu_by_tanh_and_prelu():
    x, slope = normal(2, 3, 4), normal(3, 1, seed=1)
    expected = onnx_meaning("Gelu", x, approximate="tanh")
    np.testing.assert_allclose(meaning(activations.gelu, x, approximate=True), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(meaning(activations.prelu, x, slope), np.where(x >= 0, x, x * slope), rtol=1e-6)


def test_shrink_of_integers_is_exact_and_wraps_around():
    x = np.array([0, 1, 3, 4, 255], np.uint8)
    np.testing.assert_array_equal(meaning(activations.shrink, x, lambd=0.0, bias=3.0), np.array([0, 254, 0, 1, 252], np.uint8))
    large = np.array([4334530119800282150, -4334530119800282150], np.int64)
    np.testing.assert_array_equal(meaning(activations.shrink, large, lambd=3.0, bias=0.0), large)


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(ExpressionError, match=r"\(3,\) and \(4,\) do not broadcast"):
        elementwise.add(te.placeholder((3,)), te.placeholder((4,)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softplus_is_exact_where_it_is_small(dtype):
    """``log(1 + e^v)`` as it is written is 0 below -17 in float32, and below -37 in float64."""
    x = np.linspace(-80, 80, 641).astype(dtype)
    expected = np.logaddexp(0, x.astype(np.longdouble))
    np.testing.assert_allclose(meaning(activations.softplus, x), expected, rtol=4 * np.finfo(dtype).eps)
    special = np.array([np.inf, -np.inf, np.nan], dtype)
    np.testing.assert_array_equal(meaning(activations.softplus, special), np.array([np.inf, 0, np.nan], dtype))
