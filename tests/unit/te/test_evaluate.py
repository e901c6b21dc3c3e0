import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import signal, special

from ansorlite import te
from ansorlite.errors import ArgumentError, ExpressionError
from ansorlite.te import contraction as contraction_module
from ansorlite.te import dtypes
from ansorlite.te import evaluate as evaluate_module
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.strategies import arrays_for, assert_close, dags, points
from tests.unit.te import loop_reference

relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def run(tensors, *arrays):
    return evaluate(ComputeDAG.of(tensors), arrays)


@relaxed
@given(dags().filter(lambda dag: points(dag) < 1500), st.integers(0, 2**32 - 1))
def test_equals_plain_loops(dag, seed):
    arrays = arrays_for(dag, np.random.default_rng(seed))
    assert_close(dag, evaluate(dag, arrays), loop_reference.run(dag, arrays))


@relaxed
@given(dag=dags(), block=st.integers(1, 200), threads=st.integers(1, 3))
def test_blocks_do_not_matter(dag, block, threads):
    arrays = arrays_for(dag, np.random.default_rng(0))
    whole = evaluate(dag, arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate_module, "BLOCK_ELEMENTS", max(block, points(dag) // 50))
        cut = evaluate(dag, arrays, threads)
        same = evaluate(dag, arrays)
    assert_close(dag, cut, whole)
    for ours, theirs in zip(cut, same, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@relaxed
@given(dag=dags(), parts=st.integers(1, 5))
def test_sums_in_single_precision_are_well_within_what_is_allowed(dag, parts):
    arrays = arrays_for(dag, np.random.default_rng(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction_module, "_IN_SINGLE", parts)
        single = evaluate(dag, arrays, single=True)
    assert_close(dag, single, evaluate(dag, arrays))


def test_parts_of_sums_in_single_precision_are_added_in_double(rng, monkeypatch):
    monkeypatch.setattr(contraction_module, "_IN_SINGLE", 1)
    a, b = rng.normal(size=(33, 65)).astype("f4"), rng.normal(size=(65, 17)).astype("f4")
    (c,) = evaluate(ComputeDAG.of(workloads.matmul(33, 17, 65)), [a, b], single=True)
    products = a[:, :, None] * b
    assert products.dtype == np.float32
    np.testing.assert_array_equal(c, products.astype("f8").sum(axis=1).astype("f4"))


def test_what_is_wrong_in_a_block_is_said_by_any_thread(monkeypatch):
    a, at = te.placeholder((64,), name="a"), te.placeholder((64,), "int32", name="at")
    b = te.compute((64,), lambda i: a[at[i]], name="b")
    monkeypatch.setattr(evaluate_module, "BLOCK_ELEMENTS", 8)
    with pytest.raises(ExpressionError, match="index 0 of a is 64 in b, but its extent is 64"):
        evaluate(ComputeDAG.of([a, at, b]), [np.zeros(64, "f4"), np.arange(1, 65, dtype="i4")], 2)


def test_matmul(rng):
    a, b = rng.normal(size=(33, 65)).astype("f4"), rng.normal(size=(65, 17)).astype("f4")
    (c,) = run(workloads.matmul(33, 17, 65), a, b)
    np.testing.assert_allclose(c, a.astype("f8") @ b, rtol=1e-6, atol=1e-6)


def test_conv2d_is_a_correlation(rng):
    x, w = rng.normal(size=(1, 5, 12, 13)).astype("f4"), rng.normal(size=(4, 5, 3, 3)).astype("f4")
    (y,) = run(workloads.conv2d(1, 5, 12, 13, 4), x, w)
    padded = np.pad(x[0].astype("f8"), ((0, 0), (1, 1), (1, 1)))
    want = [sum(signal.correlate(padded[c], w[o, c], mode="valid") for c in range(5)) for o in range(4)]
    np.testing.assert_allclose(y[0], want, rtol=1e-5, atol=1e-5)


def test_transposed_convolution_is_the_scattered_one(rng):
    x, w = rng.normal(size=(1, 3, 5, 6)).astype("f4"), rng.normal(size=(3, 2, 4, 4)).astype("f4")
    (y,) = run(workloads.conv2d_transposed(1, 3, 5, 6, 2), x, w)
    want = np.zeros((2, 5 * 2 + 2, 6 * 2 + 2))
    for i, j in np.ndindex(5, 6):
        want[:, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += np.einsum("c,cokl->okl", x[0, :, i, j], w)
    np.testing.assert_allclose(y[0], want[:, 1:-1, 1:-1], rtol=1e-5, atol=1e-5)


def test_max_pool(rng):
    x = rng.normal(size=(1, 2, 9, 8)).astype("f4")
    (y,) = run(workloads.max_pool(1, 2, 9, 8), x)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(y, windows.max((-1, -2)))


def test_softmax_and_layer_norm(rng):
    x = rng.normal(size=(7, 31)).astype("f4")
    np.testing.assert_allclose(run(workloads.softmax(7, 31), x)[0], special.softmax(x, 1), rtol=1e-5)
    gamma, beta = rng.normal(size=(2, 31)).astype("f4")
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(run(workloads.layer_norm(7, 31), x, gamma, beta)[0], want, rtol=1e-4, atol=1e-5)


def test_int8_matmul_is_exact(rng):
    a = rng.integers(0, 256, (9, 100)).astype("u1")
    b = rng.integers(-128, 128, (100, 11)).astype("i1")
    np.testing.assert_array_equal(run(workloads.int8_matmul(9, 11, 100), a, b)[0], a.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integer_sums_of_products_wrap(rng, dtype):
    info = np.iinfo(dtype)
    a, b = rng.integers(info.min, info.max, (2, 6, 6), dtype=dtype, endpoint=True)
    (c,) = run(workloads.matmul(6, 6, 6, dtype), a, b)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(c, np.matmul(a, b))


def test_float32_sums_are_accurate():
    x = np.full(1 << 20, 0.1, "f4")
    (total,) = run(workloads.sum_of_squares(1 << 20), x)
    assert total[0] == np.float32(np.sum(x.astype("f8") ** 2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("fold", [te.sum, te.max, te.min, te.prod])
def test_half_precision_is_rounded_once(rng, dtype, fold):
    a = te.placeholder((3, 40), dtype, name="A")
    k = te.reduce_axis(40)
    b = te.compute((3,), lambda i: fold(te.exp(a[i, k]) * a[i, k], axis=k))
    kind = dtypes.NUMPY[dtype]
    x = rng.normal(size=(3, 40)).astype(kind)
    exponential = np.exp(x.astype("f4")).astype(kind)
    product = (exponential.astype("f4") * x.astype("f4")).astype(kind).astype("f8")
    want = {te.sum: np.sum, te.max: np.max, te.min: np.min, te.prod: np.prod}[fold](product, axis=1)
    np.testing.assert_array_equal(run([a, b], x)[0], want.astype(kind))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint16"])
def test_every_function_on_every_dtype(rng, dtype):
    a = te.placeholder((50,), dtype, name="A")
    x = np.maximum(rng.normal(size=50) * 3 + 4, 1).astype(dtypes.NUMPY[dtype])
    table = {
        te.exp: np.exp,
        te.log: np.log,
        te.sqrt: np.sqrt,
        te.rsqrt: lambda v: 1 / np.sqrt(v),
        te.tanh: np.tanh,
        te.sigmoid: special.expit,
        te.erf: special.erf,
        te.abs: np.abs,
        te.floor: np.floor,
        te.ceil: np.ceil,
        te.round: np.rint,
    }
    for ours, theirs in table.items():
        b = te.compute((50,), lambda i, f=ours: f(a[i]))
        (got,) = run([a, b], x)
        tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6}.get(dtype, 1e-12)
        np.testing.assert_allclose(got.astype("f8"), theirs(x.astype("f8")), rtol=tolerance)


def test_nan_wins_and_infinities_pass():
    a = te.placeholder((4,), name="A")
    k = te.reduce_axis(4)
    most = te.compute((), lambda: te.max(a[k], axis=k))
    total = te.compute((), lambda: te.sum(a[k], axis=k))
    values = [x[()] for x in run([a, most, total], np.array([1, np.nan, 2, 3], "f4"))]
    assert np.isnan(values).all()
    assert run([a, most, total], np.array([1, np.inf, 2, 3], "f4")) == [np.inf, np.inf]


def test_integer_division_is_numpys():
    a, b = te.placeholder((6,), "int32", "A"), te.placeholder((6,), "int32", "B")
    q = te.compute((6,), lambda i: a[i] // b[i])
    r = te.compute((6,), lambda i: a[i] % b[i])
    x, y = np.array([7, -7, 7, -7, 5, 0], "i4"), np.array([2, 2, -2, -2, 0, 0], "i4")
    quotient, remainder = run([a, b, q, r], x, y)
    assert quotient.tolist() == [3, -4, -4, 3, 0, 0]
    assert remainder.tolist() == [1, 1, -1, -1, 0, 0]


def test_an_untaken_arm_is_not_read_but_a_taken_one_is():
    a = te.placeholder((4,), name="A")
    x = np.arange(4, dtype="f4")
    shifted = te.compute((4,), lambda i: te.if_then_else(i >= 1, a[i - 1], -1.0), name="S")
    assert run([a, shifted], x)[0].tolist() == [-1, 0, 1, 2]
    wrong = te.compute((4,), lambda i: te.if_then_else(i >= 2, a[i + 1], -1.0), name="W")
    with pytest.raises(ExpressionError, match=r"index 0 of A is 4 in W, but its extent is 4; guard"):
        run([a, wrong], x)
    nested = te.compute((4,), lambda i: te.if_then_else(i >= 2, te.if_then_else(i < 3, a[i + 1], 0.0), -1.0), name="N")
    assert run([a, nested], x)[0].tolist() == [-1, -1, 3, 0]


def test_a_gather_is_checked_when_it_runs():
    a, at = te.placeholder((4,), name="A"), te.placeholder((3,), "int32", "at")
    b = te.compute((3,), lambda i: a[at[i]], name="B")
    x = np.arange(4, dtype="f4")
    assert run([a, at, b], x, np.array([3, 0, 3], "i4"))[0].tolist() == [3, 0, 3]
    with pytest.raises(ExpressionError, match="index 0 of A is -1 in B"):
        run([a, at, b], x, np.array([3, -1, 3], "i4"))


def test_scalars_constants_and_unread_inputs():
    a = te.placeholder((), name="A")
    unread = te.placeholder((2,), "bool", name="U")
    b = te.compute((3,), lambda i: a[()] + i, name="B")
    (got,) = run([a, unread, b], np.array(0.5, "f4"), np.zeros(2, bool))
    assert got.dtype == np.float64
    assert got.tolist() == [0.5, 1.5, 2.5]


def test_a_very_deep_expression():
    a = te.placeholder((2,), name="A")

    def deep(i):
        value = a[i]
        for _ in range(5_000):
            value = value + 1.0
        return value

    assert run([a, te.compute((2,), deep)], np.zeros(2, "f4"))[0].tolist() == [5_000, 5_000]


def test_wrong_arguments_are_named():
    dag = ComputeDAG.of(workloads.matmul(2, 3, 4))
    a, b = np.zeros((2, 4), "f4"), np.zeros((4, 3), "f4")
    with pytest.raises(ArgumentError, match=r"1 arrays given for 2 inputs \(A, B\)"):
        evaluate(dag, [a])
    with pytest.raises(ArgumentError, match=r"array for B has shape \(3, 4\); give one of shape \(4, 3\)"):
        evaluate(dag, [a, b.T])
    with pytest.raises(ArgumentError, match="array for A is float64; convert it to float32"):
        evaluate(dag, [a.astype("f8"), b])


def test_negative_powers_of_integers_are_cut_off():
    bases, exponents = np.array([-3, -1, -1, 0, 1, 2, 3, -128], "i1"), np.array([-1, -2, -3, -1, -5, -1, 2, 2], "i1")
    a, b = (te.placeholder((8,), "int8", name) for name in "AB")
    c = te.compute((8,), lambda i: te.power(a[i], b[i]))
    assert run([a, b, c], bases, exponents)[0].tolist() == [0, 1, -1, 0, 1, 0, 9, 0]


@pytest.mark.parametrize("dtype", [d for d in dtypes.NUMPY if dtypes.is_integer(d)])
@pytest.mark.parametrize("source", [d for d in dtypes.NUMPY if dtypes.is_float(d)])
def test_floats_become_the_nearest_integer_that_fits(source, dtype):
    info, kind = np.iinfo(dtype), dtypes.NUMPY[source]
    values = [np.nan, np.inf, -np.inf, -0.0, 0.75, -0.75, 1.5, -1.5]
    values += [sign * 2.0**power for power in (7, 8, 15, 16, 31, 32, 63) for sign in (1, -1)]
    with np.errstate(over="ignore"):
        given = np.array(values).astype(kind)

    def exact(value):
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return info.max if value > 0 else info.min
        return min(max(int(value), info.min), info.max)

    a = te.placeholder(given.shape, source, "A")
    found = run([a, te.compute(given.shape, lambda i: te.cast(a[i], dtype))], given)[0]
    assert found.dtype == dtype
    assert found.tolist() == [exact(float(value)) for value in given]


def test_int64_literals_that_overflow_wrap_as_values_do():
    a = te.placeholder((1,), "int64", "A")
    large = te.cast(1 << 62, "int64")
    b = te.compute((1,), lambda i: a[i] + large * large + (large + large))
    assert run([a, b], np.zeros(1, "i8"))[0].tolist() == [-(1 << 63)]


@pytest.fixture
def rng():
    return np.random.default_rng(7)
