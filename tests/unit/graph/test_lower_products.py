"""Products of float32 on operands of bfloat16: which, what they give, and what stays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ansorlite as al
from ansorlite.errors import ArgumentError
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.graph.model import Model
from ansorlite.graph.passes.lower_products import lower_products
from ansorlite.target import Target
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.einsum import einsum
from ansorlite.topi.elementwise import add
from ansorlite.topi.matmul import gemm, matmul
from ansorlite.topi.pooling import max_pool
from ansorlite.topi.quantized import integer_matmul
from ansorlite.topi.shape import concat, transpose
from ansorlite.topi.softmax import softmax
from tests import targets
from tests.unit.graph.support import node_by_node, operators


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rounded(array: np.ndarray) -> np.ndarray:
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.fixture
def build() -> GraphBuilder:
    builder = GraphBuilder()
    builder.input("x", Value((2, 8, 6, 6), "float32"))
    builder.input("a", Value((6, 8), "float32"))
    builder.input("b", Value((4, 8), "float32"))
    return builder


def both(graph: Graph) -> tuple[Graph, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The graph after the pass, what it computes, and what the one before computes of the same inputs."""
    after = lower_products(graph, "bfloat16")
    inputs = {name: f32(*value.shape, seed=99).astype(value.dtype) for name, value in graph.inputs.items()}
    assert {name: after.values[of].dtype for name, of in after.outputs.items()} == dict.fromkeys(graph.outputs, "float32")
    return after, node_by_node(after, inputs), node_by_node(graph, inputs)


def test_operands_are_rounded_and_sums_are_not(build: GraphBuilder) -> None:
    weight = f32(8, 5)
    after, result, _ = both(build.finish({"y": build.apply(relu, build.apply(matmul, "a", build.constant(weight)))}))
    assert operators(after) == ["cast", "matmul", "relu"]
    a = f32(6, 8, seed=99)
    expected = np.maximum(rounded(a) @ rounded(weight), 0)
    np.testing.assert_allclose(result["y"], expected, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(result["y"], rounded(result["y"]))
    assert [array.dtype.name for array in after.constants.values()] == ["bfloat16"]


def test_an_operand_of_several_products_is_rounded_once(build: GraphBuilder) -> None:
    one = build.apply(matmul, "a", build.constant(f32(8, 5)))
    two = build.apply(matmul, "a", build.constant(f32(8, 5, seed=1)))
    assert operators(both(build.finish({"y": build.apply(add, one, two)}))[0]).count("cast") == 1


def test_what_only_moves_on_the_way_to_products_is_rounded_before(build: GraphBuilder) -> None:
    weights = [build.constant(f32(4, channels, 3, 3, seed=channels)) for channels in (8, 16)]
    first = build.apply(relu, build.apply(conv, "x", weights[0], before=(1, 1), after=(1, 1)))
    joined = build.apply(relu, build.apply(concat, build.apply(max_pool, first, kernel=(1, 1)), first, "x", axis=1))
    graph = build.finish({"y": build.apply(conv, joined, weights[1])})
    after, result, before = both(graph)
    assert operators(after) == ["cast", "conv", "relu", "cast", "max_pool", "concat", "relu", "conv"]
    wide = [node.output for node in after.nodes if after.values[node.output].dtype == "float32"]
    assert [after.producers[name].operator for name in wide] == [conv, relu, conv]
    error = np.abs(result["y"] - before["y"]).max() / np.sqrt(np.mean(before["y"] ** 2))
    assert 0 < error < 2e-2


def test_what_something_else_reads_too_moves_as_it_is(build: GraphBuilder) -> None:
    turned = build.apply(transpose, "a", axes=(1, 0))
    product = build.apply(matmul, turned, build.constant(f32(6, 5)))
    after, _, _ = both(build.finish({"y": product, "turned": turned}))
    assert operators(after) == ["transpose", "cast", "matmul"]


@pytest.mark.parametrize("name", ["gemm", "conv", "in groups", "conv_transpose", "one filter a group", "einsum"])
def test_every_product_gives_nearly_the_same(name: str, build: GraphBuilder) -> None:
    match name:
        case "gemm":
            node = build.apply(gemm, "a", "b", transpose_b=True)
        case "conv":
            node = build.apply(conv, "x", build.constant(f32(4, 8, 3, 3)), before=(1, 1), after=(1, 1))
        case "in groups":
            node = build.apply(conv, "x", build.constant(f32(4, 4, 3, 3)), groups=2)
        case "conv_transpose":
            node = build.apply(conv_transpose, "x", build.constant(f32(8, 4, 3, 3)), strides=(2, 2))
        case "one filter a group":
            node = build.apply(conv_transpose, "x", build.constant(f32(8, 1, 3, 3)), groups=2)
        case _:
            node = build.apply(einsum, "a", "b", inputs=("ik", "jk"), output="ij")
    after, result, before = both(build.finish({"y": node}))
    assert "cast" in operators(after)
    error = np.abs(result["y"] - before["y"]).max() / np.sqrt(np.mean(before["y"] ** 2))
    assert 0 < error < 2e-2


def test_what_is_no_product_of_float32_stays(build: GraphBuilder) -> None:
    build.input("bytes", Value((6, 8), "uint8"))
    found = {
        "channels": build.apply(conv, "x", build.constant(f32(8, 1, 3, 3)), groups=8),
        "integers": build.apply(integer_matmul, "bytes", build.constant(np.ones((8, 4), np.int8))),
        "angles": build.apply(matmul, build.constant(f32(6, 1)), build.constant(f32(1, 4))),
        "outer": build.apply(einsum, "a", "b", inputs=("ik", "jk"), output="ijk"),
        "probabilities": build.apply(softmax, "a", axes=(1,)),
    }
    graph = build.finish(found)
    assert lower_products(graph, "bfloat16") is graph


@pytest.mark.parametrize("target", [targets.WIDE, targets.NARROW])
def test_a_model_has_tasks_of_bfloat16_in_blocks_of_channels(target: Target) -> None:
    build = GraphBuilder()
    build.input("x", Value((1, 64, 7, 7), "float32"))
    value = "x"
    for seed in range(3):
        value = build.apply(
            relu, build.apply(conv, value, build.constant(f32(64, 64, 3, 3, seed=seed)), before=(1, 1), after=(1, 1))
        )
    graph = build.finish({"y": value})
    plain, lower = (Model.of(graph, target, precision=precision) for precision in ("float32", "bfloat16"))
    assert operators(plain.graph).count("blocked_conv") == operators(lower.graph).count("blocked_conv") == 3
    assert {tensor.dtype for task, _ in lower.tasks for tensor in task.dag.inputs if tensor.constant} == {"bfloat16"}
    assert {value.dtype for value in lower.outputs.values()} == {"float32"}


def test_a_compiled_model_computes_what_its_graph_says() -> None:
    build = GraphBuilder()
    build.input("a", Value((6, 8), "float32"))
    hidden = build.apply(relu, build.apply(matmul, "a", build.constant(f32(8, 32))))
    graph, a = build.finish({"y": build.apply(matmul, hidden, build.constant(f32(32, 3, seed=1)))}), f32(6, 8, seed=99)
    (found,) = al.compile(Model.of(graph, precision="bfloat16"))({"a": a}).values()
    hidden_sums = np.maximum(rounded(a) @ rounded(f32(8, 32)), 0)
    np.testing.assert_allclose(found, rounded(hidden_sums) @ rounded(f32(32, 3, seed=1)), rtol=1e-2, atol=1e-2)
    assert not np.allclose(found, np.maximum(a @ f32(8, 32), 0) @ f32(32, 3, seed=1), rtol=1e-5, atol=1e-5)


def test_another_precision_is_refused(build: GraphBuilder) -> None:
    graph = build.finish({"y": build.apply(relu, "a")})
    with pytest.raises(ArgumentError, match="precision is 'float16'; it must be 'float32' or 'bfloat16'"):
        Model.of(graph, precision="float16")
