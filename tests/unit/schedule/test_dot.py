"""The rewrite to dot products of words keeps the meaning, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.analysis.dot import dot_product
from ansorlite.schedule.dot import dot_words
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.ops import DOTS, BinaryOp
from ansorlite.te.printer import text
from tests import workloads

OP_OF = {("uint8", "int8"): BinaryOp.DOT_U8S8, ("int8", "int8"): BinaryOp.DOT_S8S8, ("uint8", "uint8"): BinaryOp.DOT_U8U8}


def extremes(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.choice([info.min, info.max, 1, 0], shape, p=[0.4, 0.4, 0.1, 0.1]).astype(dtype)


@pytest.mark.parametrize("k", [4, 7, 66])
@pytest.mark.parametrize("pair", OP_OF)
@pytest.mark.parametrize("halves", [False, True])
def test_products(pair: tuple[str, str], k: int, halves: bool) -> None:
    dag = ComputeDAG.of(workloads.quantised_matmul(5, 6, k, pair))
    op = BinaryOp.DOT_S16S16 if halves else OP_OF[pair]
    how = dot_product(dag.outputs[0], (op,))
    assert how is not None
    words = dot_words(dag, "C", how, ("A_words", "B_words"))
    rng = np.random.default_rng(k)
    inputs = [extremes(t.shape, t.dtype, rng) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, inputs)[0], evaluate(dag, inputs)[0])
    assert f"{op.value}(A_words[" in text(words)
    assert words.computes[0].shape[1] == -(-k // DOTS[op][0].count)


def test_a_convolution_whose_zero_point_pads() -> None:
    dag = ComputeDAG.of(workloads.quantised_conv2d(7, 6, 5, 4, stride=2, zero=9))
    how = dot_product(dag.outputs[0], (BinaryOp.DOT_S16S16,))
    assert how is not None
    words = dot_words(dag, "conv", how, ("a", "b"))
    rng = np.random.default_rng(3)
    inputs = [extremes(t.shape, t.dtype, rng) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, inputs)[0], evaluate(dag, inputs)[0])


def test_zero_points_of_rows_and_columns() -> None:
    dag = ComputeDAG.of(workloads.quantised_matmul_by_columns())
    how = dot_product(dag.outputs[0], (BinaryOp.DOT_S16S16,))
    assert how is not None
    words = dot_words(dag, "C", how, ("a", "b"))
    rng = np.random.default_rng(4)
    inputs = [extremes(t.shape, t.dtype, rng) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, inputs)[0], evaluate(dag, inputs)[0])
