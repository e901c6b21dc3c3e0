"""Sums of float16 and bfloat16 are made in float32, in compiled programs too: they neither stand still nor overflow."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from ansorlite import te
from ansorlite.best import Programs
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from ansorlite.te.tensor import Tensor
from ansorlite.topi import norm
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.einsum import einsum
from ansorlite.topi.indexing import Scatter, scatter_elements
from ansorlite.topi.matmul import gemm, matmul
from ansorlite.topi.patterns import cumulative_sum
from ansorlite.topi.pooling import average_pool, global_lp_pool, max_pool
from ansorlite.topi.reduction import reduce_l1, reduce_l2, reduce_log_sum_exp, reduce_max, reduce_mean, reduce_min, reduce_sum
from ansorlite.topi.softmax import log_softmax, softmax

#: From this many ones on, a sum in float16 does not grow any more.
MANY = 4096

CASES: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...], float]] = {
    "matmul": (matmul, ((2, MANY), (MANY, 3)), MANY),
    "gemm": (lambda a, b: gemm(a, b, transpose_b=True), ((2, MANY), (3, MANY)), MANY),
    "einsum": (lambda a, b: einsum(a, b, inputs=("ik", "jk"), output="ij"), ((2, MANY), (3, MANY)), MANY),
    "conv": (conv, ((1, MANY, 2, 2), (3, MANY, 1, 1)), MANY),
    "conv_transpose": (conv_transpose, ((1, MANY, 2, 2), (MANY, 3, 1, 1)), MANY),
    "sum": (lambda x: reduce_sum(x, axes=[1]), ((2, MANY),), MANY),
    "l1": (lambda x: reduce_l1(x, axes=[1]), ((2, MANY),), MANY),
    "l2": (lambda x: reduce_l2(x, axes=[1]), ((2, MANY),), 64),
    "log_sum_exp": (lambda x: reduce_log_sum_exp(x, axes=[1]), ((2, MANY),), 1 + np.log(MANY)),
    "mean": (lambda x: reduce_mean(x, axes=[1]), ((2, 70000),), 1),
    "softmax": (lambda x: softmax(x, axes=[1]), ((2, MANY),), 1 / MANY),
    "average_pool": (lambda x: average_pool(x, kernel=(64, 64)), ((1, 2, 64, 64),), 1),
    "global_lp_pool": (global_lp_pool, ((1, 2, 64, 64),), 64),
    "rms_norm": (lambda x, g: norm.rms_norm(x, g), ((2, 70000), (1,)), 1),
    "lp_normalize": (norm.lp_normalize, ((2, MANY),), 1 / 64),
}


def _kernel(operator: Callable[..., Tensor], inputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What the compiled default program gives, and the numpy meaning."""
    tensors = [te.placeholder(a.shape, a.dtype.name, f"x{n}") for n, a in enumerate(inputs)]
    result = operator(*tensors)
    task = Task([*tensors, result])
    assert result.dtype == inputs[0].dtype.name
    return Programs(None).kernel(task)(*inputs), evaluate(task.dag, inputs)[0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_a_sum_of_many_ones(name: str, dtype: type) -> None:
    operator, shapes, expected = CASES[name]
    compiled, meaning = _kernel(operator, [np.ones(shape, dtype) for shape in shapes])
    for result in (compiled, meaning):
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("operator", [softmax, log_softmax])
def test_softmax_rounds_once(operator: Callable[..., Tensor], dtype: type) -> None:
    x = np.random.default_rng(0).normal(0, 4, (5, 300)).astype(dtype)
    shifted = x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    expected = np.exp(shifted) / total if operator is softmax else shifted - np.log(total)
    compiled, meaning = _kernel(lambda x: operator(x, axes=[1]), [x])
    for result in (compiled, meaning):
        # Half a unit in the last place, and what float32 rounds before.
        half = float(ml_dtypes.finfo(dtype).eps) / 2 + 1e-5
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=half, atol=float(ml_dtypes.finfo(dtype).tiny))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["max", "min", "pool"])
def test_extremes_are_elements(name: str, dtype: type) -> None:
    x = np.random.default_rng(0).normal(0, 4, (1, 3, 12, 12)).astype(dtype)
    x[0, 0, 0, 0], x[0, 1], x[0, 2] = np.nan, -np.inf, -np.abs(x[0, 2])
    operator: dict[str, Callable[..., Tensor]] = {
        "max": lambda x: reduce_max(x, axes=[2, 3]),
        "min": lambda x: reduce_min(x, axes=[2, 3]),
        "pool": lambda x: max_pool(x, kernel=(3, 3), strides=(3, 3)),
    }
    expected = {
        "max": lambda: x.max((2, 3)),
        "min": lambda: x.min((2, 3)),
        "pool": lambda: x.reshape(1, 3, 4, 3, 4, 3).max((3, 5)),
    }
    for result in _kernel(operator[name], [x]):
        np.testing.assert_array_equal(result.astype(np.float32), expected[name]().astype(np.float32))


def test_a_running_sum() -> None:
    compiled, _ = _kernel(lambda x: cumulative_sum(x, axis=0), [np.ones(3000, np.float16)])
    assert compiled[-1] == 3000


def test_what_is_added_at_one_place() -> None:
    inputs = [np.zeros(2, np.float16), np.ones(MANY, np.int64), np.ones(MANY, np.float16)]
    compiled, meaning = _kernel(lambda x, i, u: scatter_elements(x, i, u, mode=Scatter.ADD), inputs)
    for result in (compiled, meaning):
        np.testing.assert_array_equal(result, [0, MANY])


def test_a_variance_whose_sum_no_float16_holds() -> None:
    x = np.tile(np.array([-20, 20], np.float16), (2, MANY // 2))
    compiled, meaning = _kernel(lambda x, g: norm.layer_norm(x, g), [x, np.ones(MANY, np.float16)])
    for result in (compiled, meaning):
        np.testing.assert_array_equal(result, np.sign(x))
