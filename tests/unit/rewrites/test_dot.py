"""The rewrite to dot products of words keeps the meaning, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.analysis.dot import dot_product, dot_products
from ansorlite.rewrites.dot import dot_words
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.ops import DOTS, BinaryOp
from ansorlite.te.printer import text
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.words import WORD
from tests import workloads

OP_OF = {("uint8", "int8"): BinaryOp.DOT_U8S8, ("int8", "int8"): BinaryOp.DOT_S8S8, ("uint8", "uint8"): BinaryOp.DOT_U8U8}


def extremes(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.choice([info.min, info.max, 1, 0], shape, p=[0.4, 0.4, 0.1, 0.1]).astype(dtype)


def as_read(dag: ComputeDAG, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """``arrays`` as the inputs of ``dag``, which may see bytes as words."""
    return [a if a.dtype == t.dtype else a.view(t.dtype) for a, t in zip(arrays, dag.inputs, strict=True)]


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
    np.testing.assert_array_equal(evaluate(words, as_read(words, inputs))[0], evaluate(dag, inputs)[0])
    in_place = k % 4 == 0 and not halves
    assert f"{op.value}({'A' if in_place else 'A_words'}[" in text(words)
    operand = words.inputs[0] if in_place else words.computes[0]
    assert operand.shape[1] == -(-k // DOTS[op][0].count)


@pytest.mark.parametrize("k", [2, 7, 66])
def test_products_of_bfloat16(k: int) -> None:
    dag = ComputeDAG.of(workloads.widened_matmul(5, 6, k))
    how = dot_product(dag.outputs[0], (BinaryOp.DOT_BF16,))
    assert how is not None
    words = dot_words(dag, "C", how, ("A_words", "B_words"))
    rng = np.random.default_rng(k)
    # Small integers, whose sums are exact in any order.
    inputs = [rng.integers(-64, 64, t.shape).astype(dtypes.NUMPY[t.dtype]) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, as_read(words, inputs))[0], evaluate(dag, inputs)[0])
    assert f"dot_bf16({'A' if k % 2 == 0 else 'A_words'}[" in text(words)


@pytest.mark.parametrize("k", [7, 66])
@pytest.mark.parametrize("pair", OP_OF)
def test_the_words_of_rows_lie_side_by_side_if_wanted(pair: tuple[str, str], k: int) -> None:
    a, b = te.placeholder((k, 5), pair[0], "A"), te.placeholder((k, 6), pair[1], "B")
    r = te.reduce_axis(k, name="k")
    product = te.compute((5, 6), lambda i, j: te.sum(te.cast(a[r, i], "int32") * te.cast(b[r, j], "int32"), axis=r), name="C")
    dag = ComputeDAG.of([a, b, product])
    how = dot_product(product, (OP_OF[pair],))
    assert how is not None
    inputs = [extremes(t.shape, t.dtype, np.random.default_rng(k)) for t in dag.inputs]
    count = -(-k // DOTS[how.op][0].count)
    for steps_last, shape in ((True, (5, count)), (False, (count, 5))):
        words = dot_words(dag, "C", how, ("A_words", "B_words"), steps_last=steps_last)
        assert [tensor.shape for tensor in words.computes[:2]] == [shape, (count, 6)]
        np.testing.assert_array_equal(evaluate(words, inputs)[0], evaluate(dag, inputs)[0])


def test_a_single_sum_has_words_too() -> None:
    a, b = (te.placeholder((18, 1), "int8", name) for name in "AB")
    r = te.reduce_axis(18, name="k")
    single = te.compute((), lambda: te.sum(te.cast(a[r, 0], "int32") * te.cast(b[r, 0], "int32"), axis=r), name="C")
    dag = ComputeDAG.of([a, b, single])
    how = next(dot_products(single, (BinaryOp.DOT_S8S8,)))
    words = dot_words(dag, "C", how, ("A_words", "B_words"), steps_last=True)
    inputs = [extremes(t.shape, t.dtype, np.random.default_rng(1)) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, inputs)[0], evaluate(dag, inputs)[0])


def test_a_border_of_bfloat16_is_seen_as_words() -> None:
    dag = ComputeDAG.of(workloads.widened_conv2d(8, block=4))
    how = dot_product(dag.outputs[0], (BinaryOp.DOT_BF16,))
    assert how is not None
    words = dot_words(dag, "conv", how, ("a", "b"))
    assert [t.name for t in words.computes if t.dtype == WORD] == ["padded", "b"]
    rng = np.random.default_rng(2)
    inputs = [rng.integers(-64, 64, t.shape).astype(dtypes.NUMPY[t.dtype]) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, as_read(words, inputs))[0], evaluate(dag, inputs)[0])


def test_a_convolution_whose_zero_point_pads() -> None:
    dag = ComputeDAG.of(workloads.quantised_conv2d(7, 6, 5, 4, stride=2, zero=9))
    how = dot_product(dag.outputs[0], (BinaryOp.DOT_S16S16,))
    assert how is not None
    words = dot_words(dag, "conv", how, ("a", "b"))
    rng = np.random.default_rng(3)
    inputs = [extremes(t.shape, t.dtype, rng) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, as_read(words, inputs))[0], evaluate(dag, inputs)[0])


def test_zero_points_of_rows_and_columns() -> None:
    dag = ComputeDAG.of(workloads.quantised_matmul_by_columns())
    how = dot_product(dag.outputs[0], (BinaryOp.DOT_S16S16,))
    assert how is not None
    words = dot_words(dag, "C", how, ("a", "b"))
    rng = np.random.default_rng(4)
    inputs = [extremes(t.shape, t.dtype, rng) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, as_read(words, inputs))[0], evaluate(dag, inputs)[0])


@pytest.mark.parametrize("border", [0, 1])
def test_channels_in_blocks_are_words_in_memory(border: int) -> None:
    dag = ComputeDAG.of(workloads.quantised_conv2d_in_blocks(border))
    how = dot_product(tensor_named(dag, "integer_conv"), (BinaryOp.DOT_U8S8,))
    assert how is not None
    words = dot_words(dag, "integer_conv", how, ("a", "b"))
    # The data, and its border too, are seen as words: no stage makes them.
    assert [t.name for t in words.computes if t.dtype == WORD] == [
        *["pad"] * border,
        "b",
        "integer_conv",
        "tap_sums",
        "corrected",
    ]
    assert (words.inputs[0].shape, words.inputs[0].dtype) == ((1, 2, 4, 5, 2), WORD)
    rng = np.random.default_rng(5)
    inputs = [extremes(t.shape, t.dtype, rng) for t in dag.inputs]
    np.testing.assert_array_equal(evaluate(words, as_read(words, inputs))[0], evaluate(dag, inputs)[0])


def test_bytes_that_are_read_as_bytes_too_or_not_in_whole_words_stay_bytes() -> None:
    a, b, c = workloads.quantised_matmul(6, 5, 8)
    short, _, product = workloads.quantised_matmul(6, 5, 10)
    other = te.compute((6, 8), lambda i, j: te.cast(a[i, j], "int32") * 2, name="D")
    zero = te.compute(a.shape, lambda i, j: te.if_then_else(j < 5, a[i, j], te.cast(0, "uint8")), name="E")
    k = te.reduce_axis(8, name="k")
    masked = te.compute((6, 5), lambda i, j: te.sum(te.cast(zero[i, k], "int32") * te.cast(b[k, j], "int32"), axis=k), name="F")
    for tensors, stage in (([a, b, c, other], "C"), ([short, _, product], "C"), ([a, b, masked], "F")):
        dag = ComputeDAG.of(tensors)
        how = dot_product(tensor_named(dag, stage), (BinaryOp.DOT_U8S8,))
        assert how is not None
        words = dot_words(dag, stage, how, ("a", "b"))
        assert [t.dtype for t in words.inputs] == ["uint8", "int8"]
        assert "a" in [t.name for t in words.computes]


def test_a_matrix_by_itself_is_read_as_bytes_down_its_columns() -> None:
    a = te.placeholder((8, 8), "uint8", name="A")
    k = te.reduce_axis(8, name="k")
    square = te.compute((8, 8), lambda i, j: te.sum(te.cast(a[i, k], "int32") * te.cast(a[k, j], "int32"), axis=k), name="C")
    dag = ComputeDAG.of([a, square])
    how = dot_product(square, (BinaryOp.DOT_U8U8,))
    assert how is not None
    words = dot_words(dag, "C", how, ("a", "b"))
    (numbers,) = (extremes(t.shape, t.dtype, np.random.default_rng(6)) for t in dag.inputs)
    np.testing.assert_array_equal(evaluate(words, [numbers])[0], evaluate(dag, [numbers])[0])
