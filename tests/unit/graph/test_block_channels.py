"""Channels in blocks: what is converted and where, and the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.constants import splat
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.graph.passes.block_channels import block_channels
from ansorlite.graph.passes.quantized.spread_scales import spread_scales
from ansorlite.runtime.arguments import numpy_type
from ansorlite.topi.activations import relu
from ansorlite.topi.blocked import blocked_conv
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import add, cast, multiply
from ansorlite.topi.matmul import gemm
from ansorlite.topi.norm import lrn
from ansorlite.topi.padding import PadMode, pad
from ansorlite.topi.patterns import triangle
from ansorlite.topi.pooling import average_pool, global_average_pool, global_max_pool, lp_pool, max_pool
from ansorlite.topi.quantized import dequantize, integer_conv, integer_sum, integer_window_sum, quantize, requantize
from ansorlite.topi.reduction import reduce_mean
from ansorlite.topi.shape import broadcast_to, concat, reshape, transpose
from ansorlite.topi.softmax import softmax
from tests.unit.graph.support import node_by_node, operators

BLOCK = 4
#: Where there are no matrix units.
NO_ROWS: Mapping[str, int] = {}


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def blocked(graph: Graph, rows: Mapping[str, int] = NO_ROWS, tolerance: float = 1e-5) -> Graph:
    """The graph after the pass, which must compute what it did."""
    after = block_channels(graph, BLOCK, rows)
    inputs = {name: f32(*value.shape, seed=99).astype(numpy_type(value.dtype)) for name, value in graph.inputs.items()}
    expected, result = node_by_node(graph, inputs), node_by_node(after, inputs)
    assert expected.keys() == result.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(result[name], array, rtol=tolerance, atol=tolerance)
    return after


def moves(graph: Graph) -> int:
    """How many values are moved in memory from one order to another."""
    return operators(graph).count("transpose")


@pytest.fixture
def build() -> GraphBuilder:
    builder = GraphBuilder()
    builder.input("x", Value((2, 3, 6, 6), "float32"))
    return builder


def filters(build: GraphBuilder, x: str, outputs: int, kernel: int = 1, groups: int = 1, **attributes: object) -> str:
    depth = build.value(x).shape[1] // groups
    rank = len(build.value(x).shape) - 2
    weight = f32(outputs, depth, *(kernel,) * rank, seed=outputs) / math.sqrt(depth * kernel**rank)
    border = (kernel // 2,) * rank
    return build.apply(conv, x, build.constant(weight), before=border, after=border, groups=groups, **attributes)


def stem(build: GraphBuilder) -> str:
    """Two convolutions, the first of data with three channels."""
    return filters(build, filters(build, "x", 8, kernel=3, strides=(2, 2)), 8)


def test_a_region_reads_plain_data_and_is_put_back_in_order_once(build):
    first = build.apply(relu, build.apply(add, filters(build, "x", 8, kernel=3), build.constant(f32(8, 1, 1))))
    second = build.apply(max_pool, filters(build, first, 16), kernel=(2, 2), strides=(2, 2))
    after = blocked(build.finish({"y": second}))
    assert operators(after) == ["blocked_conv", "add", "relu", "blocked_conv", "max_pool", "transpose", "reshape"]
    # The bias is a constant of the right shape, and the first convolution reads the input as it is.
    assert after.nodes[0].inputs[0] == "x"
    assert after.constants[after.nodes[1].inputs[1]].shape == (1, 2, 1, 1, BLOCK)


def test_one_convolution_does_not_pay_for_a_conversion(build):
    graph = build.finish({"y": build.apply(relu, filters(build, "x", 8))})
    assert operators(blocked(graph)) == ["conv", "relu"]


def test_one_convolution_before_a_global_mean_needs_no_conversion(build):
    mean = build.apply(global_average_pool, filters(build, "x", 8))
    logits = build.apply(gemm, build.apply(reshape, mean, shape=(2, 8)), build.constant(f32(8, 5)))
    after = blocked(build.finish({"y": logits}))
    assert operators(after) == ["blocked_conv", "reduce_mean", "reshape", "gemm"]


def test_channels_that_are_no_whole_blocks_stay(build):
    y = filters(build, filters(build, "x", 6), 10)
    assert operators(blocked(build.finish({"y": y}))) == ["conv", "conv"]


def test_a_convolution_with_other_channels_reads_what_was_put_back(build):
    y = filters(build, stem(build), 5)
    after = blocked(build.finish({"y": y}))
    assert operators(after) == ["blocked_conv", "blocked_conv", "transpose", "reshape", "conv"]


def test_weights_that_are_computed_keep_a_convolution_plain(build):
    weight = build.input("w", Value((8, 3, 1, 1), "float32"))
    y = build.apply(conv, build.apply(conv, "x", weight), build.constant(f32(8, 8, 1, 1)))
    assert operators(blocked(build.finish({"y": y}))) == ["conv", "conv"]


def test_one_vector_lane_is_no_block(build):
    graph = build.finish({"y": stem(build)})
    assert operators(block_channels(graph, 1)) == ["conv", "conv"]


@pytest.mark.parametrize("groups", [2, 8], ids=["groups of whole blocks", "depthwise"])
def test_groups(build, groups):
    y = filters(build, filters(build, filters(build, "x", 8), 8, kernel=3, groups=groups, dilations=(1, 2)), 8)
    after = blocked(build.finish({"y": y}))
    assert operators(after) == ["blocked_conv"] * 3 + ["transpose", "reshape"]


def test_groups_smaller_than_a_block_stay(build):
    y = filters(build, filters(build, filters(build, stem(build), 8, groups=4), 8), 8)
    after = blocked(build.finish({"y": y}))
    assert operators(after).count("conv") == 1
    assert moves(after) == 2


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        (max_pool, {"kernel": (3, 2), "strides": (2, 1), "before": (1, 0), "after": (1, 1), "ceil_mode": True}),
        (average_pool, {"kernel": (2, 2), "before": (1, 1), "after": (0, 1)}),
        (average_pool, {"kernel": (3, 3), "before": (1, 1), "after": (1, 1), "count_include_pad": True}),
        (lp_pool, {"kernel": (2, 2), "dilations": (1, 2)}),
        (global_average_pool, {}),
        (global_max_pool, {}),
        (reduce_mean, {"axes": (-1,), "keepdims": True}),
        (reduce_mean, {"axes": (2, 3), "keepdims": False}),
        (lrn, {"size": 5, "alpha": 0.2}),
        (lrn, {"size": 12, "alpha": 0.2, "beta": 0.6, "bias": 1.5}),  # reaches beyond the neighbouring block
        (pad, {"before": (0, 0, 1, 2), "after": (0, 0, 0, 1)}),
        (pad, {"before": (1, 0, 1, 2), "after": (0, 0, 0, 1), "mode": PadMode.REFLECT}),
    ],
)
def test_what_lies_between_convolutions_stays_in_blocks(build, operator, attributes):
    inner = build.apply(operator, stem(build), **attributes)
    y = filters(build, inner, 8) if len(build.value(inner).shape) == 4 else build.apply(gemm, inner, build.constant(f32(8, 3)))
    after = blocked(build.finish({"y": y}))
    assert "conv" not in operators(after)
    assert moves(after) == (math.prod(build.value(y).shape[2:]) > 1)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        (softmax, {"axes": (1,)}),
        (pad, {"before": (0, 1, 0, 0), "after": (0, 3, 0, 0)}),
        (reduce_mean, {"axes": (1,), "keepdims": True}),
        (reduce_mean, {"axes": None, "keepdims": True}),
        (transpose, {"axes": (0, 1, 3, 2)}),
        (broadcast_to, {"shape": (2, 8, 3, 3)}),
        (triangle, {"upper": True}),
    ],
)
def test_what_is_not_of_blocks_gets_the_value_in_order(build, operator, attributes):
    after = blocked(build.finish({"y": build.apply(operator, stem(build), **attributes)}))
    assert operators(after).count("blocked_conv") == 2
    assert getattr(operator, "__name__", "") in operators(after)


@pytest.mark.parametrize(
    "shape", [(), (1,), (8, 1, 1), (1, 8, 1, 1), (3,), (3, 3), (1, 3, 3), (8, 3, 3), (2, 1, 1, 1), (2, 8, 3, 3)]
)
def test_constants_of_any_rank_are_put_in_blocks_at_once(build, shape):
    sum_ = build.apply(multiply, build.constant(f32(*shape)), stem(build))
    after = blocked(build.finish({"y": filters(build, sum_, 8)}))
    assert operators(after) == ["blocked_conv", "blocked_conv", "multiply", "blocked_conv", "transpose", "reshape"]


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (2, 8, 1, 1), (1, 8, 1, 1), (2, 1, 3, 3), (3, 3), (2, 8, 3, 3)])
def test_values_that_are_given_are_put_in_blocks(build, shape):
    other = build.input("other", Value(shape, "float32"))
    sum_ = build.apply(add, stem(build), other)
    after = blocked(build.finish({"y": filters(build, filters(build, sum_, 8), 8)}))
    assert operators(after).count("blocked_conv") == 4
    assert moves(after) == (2 if len(shape) == 4 and shape[1] == 8 and shape[2] > 1 else 1)


def test_channels_of_a_value_with_fewer_dimensions(build):
    other = build.input("other", Value((8, 1, 1), "float32"))
    after = blocked(build.finish({"y": build.apply(add, stem(build), other)}))
    assert operators(after) == ["blocked_conv", "blocked_conv", "transpose", "reshape", "add"]


def test_a_gate_of_channels(build):
    data = stem(build)
    gate = filters(build, build.apply(global_average_pool, data), 8)
    after = blocked(build.finish({"y": filters(build, build.apply(multiply, data, gate), 8)}))
    assert operators(after).count("blocked_conv") == 4
    assert moves(after) == 1


def test_concatenation_of_whole_blocks(build):
    data = stem(build)
    parts = [filters(build, data, 4), filters(build, data, 8, kernel=3), data]
    y = filters(build, build.apply(concat, *parts, axis=1), 8)
    after = blocked(build.finish({"y": y}))
    assert operators(after) == ["blocked_conv"] * 4 + ["concat", "blocked_conv", "transpose", "reshape"]


@pytest.mark.parametrize("axis", [1, 2])
def test_other_concatenations_read_values_in_order(build, axis):
    data = stem(build)
    other = filters(build, data, 5) if axis == 1 else data
    after = blocked(build.finish({"y": build.apply(concat, data, other, axis=axis)}))
    assert operators(after)[-1] == "concat"
    assert moves(after) == 1


def test_a_value_that_is_given_out_and_used(build):
    first = stem(build)
    after = blocked(build.finish({"first": first, "y": filters(build, first, 8), "x": "x"}))
    assert operators(after).count("blocked_conv") == 3
    assert moves(after) == 2


@pytest.mark.parametrize("rank", [1, 3])
def test_any_number_of_spatial_dimensions(rank):
    build = GraphBuilder()
    x = build.input("x", Value((1, 3, *(5,) * rank), "float32"))
    y = build.apply(max_pool, filters(build, filters(build, x, 8, kernel=3), 4), kernel=(2,) * rank)
    after = blocked(build.finish({"y": y}))
    assert operators(after) == ["blocked_conv", "blocked_conv", "max_pool", "transpose", "reshape"]


def test_a_constant_of_one_value_takes_no_memory(build):
    y = build.apply(add, stem(build), build.constant(splat(np.float32(2), (8, 3, 3))))
    after = blocked(build.finish({"y": filters(build, y, 8)}))
    (constant,) = (array for name, array in after.constants.items() if ".blocked" in name)
    assert constant.strides == (0,) * 5


def bytes_through_two_layers(build: GraphBuilder, factor: np.ndarray, zeros: int = 1) -> Graph:
    """Quantised data, two convolutions in bytes, a sum with what came in between, means over windows."""
    rng = np.random.default_rng(1)
    scale, offset = build.constant(np.float32(0.1)), build.constant(np.uint8(3))
    x = build.apply(quantize, "x", scale, offset, dtype="uint8")
    for outputs in (8, 16):
        weight = rng.integers(-64, 65, (outputs, build.value(x).shape[1], 3, 3), np.int8)
        zero = build.constant(np.zeros(zeros if zeros == 1 else outputs, np.int8))
        given = {"zero": 3, "apart": True, "most": 64, "before": (1, 1), "after": (1, 1)}
        total = build.apply(integer_conv, x, build.constant(weight), zero, **given)
        total = build.apply(add, total, build.constant(rng.integers(-999, 999, (outputs, 1, 1), np.int32)))
        scales = build.constant(factor if factor.ndim == 0 else np.resize(factor, outputs))
        x = build.apply(requantize, total, scales, offset, axis=1)
    sums = build.apply(integer_window_sum, x, zero=3, kernel=(2, 2), strides=(2, 2))
    real = build.apply(dequantize, sums, scales, axis=1)
    return spread_scales(build.finish({"y": real, "mean": build.apply(integer_sum, x, zero=3, axes=(2, 3), keepdims=True)}))


@pytest.mark.parametrize("factor", [np.float32(2e-3), np.array([1e-3, 2e-3, 4e-3], np.float32)], ids=["one", "each channel"])
def test_convolutions_of_bytes(build, factor):
    after = blocked(bytes_through_two_layers(build, factor))
    layer = ["integer_conv", "add", "requantize"]
    ending = ["integer_window_sum", "dequantize", "integer_sum", "transpose", "reshape", "reshape"]
    assert operators(after) == ["quantize", *layer, *layer, *ending]
    assert [node.attribute("block") for node in after.nodes if node.operator is integer_conv] == [BLOCK, BLOCK]


def test_filters_with_a_zero_point_each_stay(build):
    after = blocked(bytes_through_two_layers(build, np.array(2e-3, np.float32), zeros=8))
    assert [node.attribute("block") for node in after.nodes if node.operator is integer_conv] == [None, None]


def blocks(build: GraphBuilder, given: str, row: int) -> list[int]:
    """The blocks of the results of the convolutions of the graph of ``given``, in running order; rows are so many bytes."""
    after = blocked(build.finish({"y": given}), {"uint8": row, "int8": row})
    return [node.attribute("block") or 0 for node in after.nodes if node.operator in (blocked_conv, integer_conv)]


def integer_filters(build: GraphBuilder, x: str, outputs: int, groups: int = 1) -> str:
    """A convolution of bytes, and bytes again."""
    shape = (outputs, build.value(x).shape[1] // groups, 1, 1)
    weight = build.constant(np.random.default_rng(outputs).integers(-64, 65, shape, np.int8))
    zero = build.constant(np.zeros(1, np.int8))
    total = build.apply(integer_conv, x, weight, zero, zero=3, apart=True, most=64, groups=groups)
    return build.apply(requantize, total, build.constant(np.float32(2e-3)), build.constant(np.uint8(3)), axis=1)


def as_bytes(build: GraphBuilder, x: str) -> str:
    return build.apply(quantize, x, build.constant(np.float32(0.1)), build.constant(np.uint8(3)), dtype="uint8")


def test_blocks_of_bytes_are_as_wide_as_the_channels_allow(build):
    first = integer_filters(build, as_bytes(build, "x"), 16)
    assert blocks(build, integer_filters(build, integer_filters(build, first, 24), 32), 16) == [16, 8, 16]


def test_blocks_of_what_is_concatenated_are_of_one_size(build):
    data = integer_filters(build, as_bytes(build, "x"), 16)
    joined = build.apply(concat, data, integer_filters(build, data, 8), integer_filters(build, data, 16), axis=1)
    assert blocks(build, integer_filters(build, joined, 32), 32) == [8, 8, 8, 32]


def test_blocks_of_a_convolution_in_groups_are_parts_of_groups(build):
    data = integer_filters(build, as_bytes(build, "x"), 32)
    grouped = integer_filters(build, data, 32, groups=4)
    assert blocks(build, integer_filters(build, grouped, 32), 32) == [8, 8, 32]


def test_blocks_of_a_depthwise_convolution_are_those_of_what_it_reads(build):
    depthwise = integer_filters(build, integer_filters(build, as_bytes(build, "x"), 32), 32, groups=32)
    assert blocks(build, integer_filters(build, depthwise, 32), 32) == [32, 32, 32]


def test_blocks_that_floats_are_convolved_with_are_vectors(build):
    data = integer_filters(build, as_bytes(build, filters(build, filters(build, "x", 16), 16)), 32)
    real = build.apply(dequantize, data, build.constant(np.float32(0.1)))
    assert blocks(build, filters(build, real, 16), 32) == [BLOCK] * 4


@pytest.mark.parametrize(
    ("dtype", "rows", "expected"),
    [
        ("bfloat16", {}, [BLOCK] * 3),
        ("bfloat16", {"bfloat16": 2 * BLOCK}, [2 * BLOCK, BLOCK, 2 * BLOCK]),
        ("float16", {"bfloat16": 2 * BLOCK}, [BLOCK] * 3),
    ],
)
def test_blocks_of_floats_of_two_bytes_are_as_wide_as_matrix_units_take_them(build, dtype, rows, expected):
    x = build.apply(cast, "x", dtype=dtype)
    for outputs in (2 * BLOCK, 3 * BLOCK, 2 * BLOCK):
        weight = f32(outputs, build.value(x).shape[1], 1, 1, seed=outputs).astype(numpy_type(dtype))
        x = build.apply(conv, x, build.constant(weight))
    after = blocked(build.finish({"y": build.apply(cast, x, dtype="float32")}), rows, tolerance=2e-2)
    assert [node.attribute("block") for node in after.nodes if node.operator is blocked_conv] == expected


@pytest.mark.parametrize(("rows", "expected"), [({}, 1), ({"bfloat16": 2 * BLOCK}, 2)])
def test_channels_that_matrix_units_multiply_are_put_side_by_side_first(rows, expected):
    build = GraphBuilder()
    x = build.input("x", Value((1, 2 * BLOCK, 5, 5), "bfloat16"))
    for seed in range(3):
        x = build.apply(conv, x, build.constant(f32(2 * BLOCK, 2 * BLOCK, 1, 1, seed=seed).astype(numpy_type("bfloat16"))))
    after = blocked(build.finish({"y": build.apply(cast, x, dtype="float32")}), rows, tolerance=2e-2)
    assert operators(after).count("blocked_conv") == 3
    assert moves(after) == expected
