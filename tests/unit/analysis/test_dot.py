"""Which sums of products are dot products of words, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansorlite import te
from ansorlite.analysis.dot import dot_product, steps_apart
from ansorlite.target import NAMED, Target
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.ops import BinaryOp
from tests import workloads
from tests.targets import NARROW, WIDE

HALVES = replace(WIDE, features="+sse2,+avx2,+avx512bw")
BYTES = replace(WIDE, features="+sse2,+avx512vnni")
PAIRS = replace(WIDE, features="+sse2,+ssse3,+avx2,+avx512bw")
ARM = replace(NARROW, features="+dotprod,+i8mm")


def last(tensors: list[te.Tensor]) -> te.Tensor:
    return ComputeDAG.of(tensors).outputs[-1]


def product(left: str, right: str, zeros: tuple[int, int] = (0, 0), k: int = 32) -> te.Tensor:
    return last(workloads.quantised_matmul(8, 16, k, (left, right), zeros))


@pytest.mark.parametrize(
    ("target", "left", "right", "zeros", "op"),
    [
        (BYTES, "uint8", "int8", (0, 0), BinaryOp.DOT_U8S8),
        (BYTES, "int8", "uint8", (0, 0), BinaryOp.DOT_U8S8),
        (BYTES, "uint8", "uint8", (0, 0), BinaryOp.DOT_S16S16),
        (BYTES, "int8", "int8", (0, 0), BinaryOp.DOT_S16S16),
        (BYTES, "uint8", "int8", (128, 0), BinaryOp.DOT_S16S16),
        (BYTES, "uint8", "uint8", (0, 128), BinaryOp.DOT_U8S8),
        (HALVES, "uint8", "int8", (128, -3), BinaryOp.DOT_S16S16),
        (HALVES, "int16", "int16", (0, 0), BinaryOp.DOT_S16S16),
        (ARM, "int8", "int8", (0, 0), BinaryOp.DOT_S8S8),
        (ARM, "uint8", "uint8", (0, 0), BinaryOp.DOT_U8U8),
        (ARM, "uint8", "int8", (0, 0), BinaryOp.DOT_U8S8),
    ],
)
def test_words_are_those_that_hold_the_values(
    target: Target, left: str, right: str, zeros: tuple[int, int], op: BinaryOp
) -> None:
    found = dot_product(product(left, right, zeros), target.dots)
    assert found is not None
    assert found.op is op
    # The first operand's pieces are the unsigned ones, whichever factor they come from.
    if op is BinaryOp.DOT_U8S8 and left == "int8":
        assert found.a.read.tensor.name == "B"


@pytest.mark.parametrize(
    ("left", "right", "zeros"),
    [("int32", "int8", (0, 0)), ("int16", "int16", (1, 0)), ("uint16", "int8", (0, 0))],
)
def test_values_that_fit_into_no_word(left: str, right: str, zeros: tuple[int, int]) -> None:
    assert dot_product(product(left, right, zeros), BYTES.dots) is None


@pytest.mark.parametrize(("most", "op"), [(64, BinaryOp.DOT_U8S7), (65, BinaryOp.DOT_S16S16), (None, BinaryOp.DOT_S16S16)])
def test_bytes_whose_products_fit_in_pairs_into_16_bits(most: int | None, op: BinaryOp) -> None:
    found = dot_product(last(workloads.quantised_matmul(8, 16, 32, most=most)), PAIRS.dots)
    assert found is not None
    assert found.op is op


def test_a_machine_without_dot_products_has_none() -> None:
    assert dot_product(product("uint8", "int8"), WIDE.dots) is None


@pytest.mark.parametrize("target", [NAMED["x86-64-v4+bf16"], NAMED["aarch64+bf16"]], ids=lambda target: target.cpu)
def test_products_of_bfloat16_into_float32(target: Target) -> None:
    found = dot_product(last(workloads.widened_matmul(8, 16, 32)), target.dots)
    assert found is not None
    assert (found.op, found.width, found.axis.name) == (BinaryOp.DOT_BF16, 2, "k")
    assert dot_product(product("uint8", "int8"), target.dots) is not None
    # Sums that are rounded at each step, and other floats: none of it is what the instruction does.
    assert dot_product(last(workloads.matmul(8, 16, 32, "bfloat16")), target.dots) is None
    for dtype in ("float16", "float32"):
        assert dot_product(last(workloads.widened_matmul(8, 16, 32, dtype)), target.dots) is None
    assert dot_product(last(workloads.widened_matmul(8, 16, 32)), BYTES.dots) is None


def test_factors_that_are_bfloat16() -> None:
    def dotted(value: Callable[[te.Expr], te.Expr]) -> bool:
        a, b = te.placeholder((16, 32), "bfloat16", name="A"), te.placeholder((32, 16), "bfloat16", name="B")
        k = te.reduce_axis(32, name="k")
        c = te.compute((16, 16), lambda i, j: te.sum(value(a[i, k]) * te.cast(b[k, j], "float32"), axis=k), name="C")
        return dot_product(c, NAMED["x86-64-v4+bf16"].dots) is not None

    assert dotted(lambda x: te.cast(x * 2.0, "float32"))
    assert not dotted(lambda x: te.cast(x, "float32") * 2.0)
    assert not dotted(lambda x: te.cast(te.cast(x, "float16"), "float32"))


def test_channels_of_a_convolution_are_dotted() -> None:
    found = dot_product(last(workloads.quantised_conv2d(8, 6, 6, 4)), BYTES.dots)
    assert found is not None
    assert (found.axis.name, found.a.dim, found.b.dim) == ("rc", 1, 1)


def dotted(body: Callable[[te.Tensor, te.Tensor, te.Expr, te.Expr, te.Axis], te.Expr], dtype: str = "int32") -> bool:
    a, b = te.placeholder((16, 40), "uint8", name="A"), te.placeholder((40, 16), "int8", name="B")
    k = te.reduce_axis(32, name="k")
    c = te.compute((16, 16), lambda i, j: te.sum(te.cast(body(a, b, i, j, k), dtype), axis=k), name="C")
    return dot_product(c, BYTES.dots) is not None


def wide(x: te.Expr) -> te.Expr:
    return te.cast(x, "int32")


def test_what_is_a_sum_of_products() -> None:
    assert dotted(lambda a, b, i, j, k: wide(a[i, k]) * wide(b[k, j]))
    assert dotted(lambda a, b, i, j, k: te.maximum(wide(a[i, k]) - 5, 0) * wide(b[k, j]))
    # Zero points of each row and column; a sum over a part of the data, which the last index does not see the end of.
    assert dotted(lambda a, b, i, j, k: (wide(a[i, k]) - wide(a[i, 0])) * (wide(b[k, j]) - wide(b[0, j])))
    assert dotted(lambda a, b, i, j, k: (wide(a[i, k]) - wide(a[0, 0])) * wide(b[k, j]))


def test_what_is_not() -> None:
    # Not a product, not into int32, not along a plain axis, not a function of one element; k does not reach B's last row.
    assert not dotted(lambda a, b, i, j, k: wide(a[i, k]) + wide(b[k, j]))
    assert not dotted(lambda a, b, i, j, k: wide(a[i, k]) * wide(b[k, j]), "int64")
    assert not dotted(lambda a, b, i, j, k: wide(a[i, k + 1]) * wide(b[k, j]))
    assert not dotted(lambda a, b, i, j, k: wide(a[i, k]) * (wide(b[k, j]) + wide(a[i, 0])))
    assert not dotted(lambda a, b, i, j, k: wide(a[i, k]) * te.if_then_else(k < 7, wide(b[k, j]), 0))


def test_factors_that_are_used_once_or_words_that_are_mostly_padding_do_not_pay() -> None:
    assert dot_product(last(workloads.quantised_matmul(1, 16, 32)), BYTES.dots) is None
    assert dot_product(last(workloads.quantised_matmul(16, 16, 5)), BYTES.dots) is not None
    narrow = dot_product(product("uint8", "int8", k=2), BYTES.dots)
    assert narrow is not None
    assert narrow.op is BinaryOp.DOT_S16S16


def conv_of_blocks(block: int) -> te.Tensor:
    dag = ComputeDAG.of(workloads.quantised_conv2d_in_blocks(block=block))
    return next(t for t in dag.computes if t.name == "integer_conv")


def test_the_channels_of_a_block_are_dotted_from_the_start_of_a_word_on() -> None:
    found = dot_product(conv_of_blocks(8), BYTES.dots)
    assert found is not None
    # Not the blocks, which lie a picture apart; the weight's channels are those of all blocks.
    assert (found.axis.name, found.a.dim, found.b.dim) == ("rc", 4, 1)
    assert found.a.adjacent
    assert not found.b.adjacent
    halves = dot_product(conv_of_blocks(6), BYTES.dots)
    # Blocks of six start in the middle of a word of four bytes, but of none of two halves.
    assert halves is not None
    assert halves.op is BinaryOp.DOT_S16S16
    assert dot_product(conv_of_blocks(5), BYTES.dots) is None


def _windows(channels: int, window: int) -> te.Tensor:
    """Windows over rows of channels, into channels that are last."""
    x = te.placeholder((channels, 64 + window), "bfloat16", name="X")
    w = te.placeholder((channels, window, 16), "bfloat16", name="W")
    c, r = te.reduce_axis(channels, name="c"), te.reduce_axis(window, name="r")

    def summed(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(te.cast(x[c, i + r], "float32") * te.cast(w[c, r, j], "float32"), axis=(c, r))

    return te.compute((64, 16), summed, name="Y")


@pytest.mark.parametrize(
    ("stage", "apart"),
    [
        (last(workloads.widened_matmul(8, 16, 32)), False),
        (last(workloads.widened_matmul(8, 16, 32, turned=True)), True),
        (_windows(64, 3), True),
        (_windows(4, 7), False),
    ],
    ids=["in order", "turned", "short window", "wide window of few channels"],
)
def test_rows_whose_words_are_apart(stage: te.Tensor, apart: bool) -> None:
    found = dot_product(stage, NAMED["x86-64-v4+bf16"].dots)
    assert found is not None
    assert steps_apart(stage, found) is apart
