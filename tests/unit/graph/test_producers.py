"""What is read by one other group only is computed inside of that, where it pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import compile_model
from ansorlite.graph.graph import Graph
from ansorlite.graph.model import Model
from ansorlite.target import resolve
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import add, exp, multiply, reciprocal, sqrt, subtract
from ansorlite.topi.matmul import matmul
from ansorlite.topi.norm import layer_norm
from ansorlite.topi.padding import pad
from ansorlite.topi.pooling import max_pool
from ansorlite.topi.reduction import reduce_mean
from ansorlite.topi.shape import gather, reshape, strided_slice, transpose
from ansorlite.topi.softmax import softmax
from tests.unit.graph.support import Meaning, node_by_node

ONE_THREAD = replace(resolve("llvm"), threads=1)


def _input(build: GraphBuilder, *shape: int) -> str:
    return build.input(f"x{len(shape)}{shape[-1]}", Value(shape, "float32"))


def _weight(build: GraphBuilder, *shape: int) -> str:
    return build.constant(np.random.default_rng(len(shape)).standard_normal(shape, np.float32), "w")


def _scaled_and_masked(build: GraphBuilder) -> str:
    scaled = build.apply(multiply, _input(build, 2, 8, 16), _weight(build, 1))
    return build.apply(softmax, build.apply(add, scaled, _input(build, 1, 16)))


def _residual_norm(build: GraphBuilder) -> str:
    return build.apply(layer_norm, build.apply(add, _input(build, 8, 16), _input(build, 16)), _weight(build, 16))


def _pooled(build: GraphBuilder) -> str:
    shifted = build.apply(add, _input(build, 1, 4, 9, 9), _weight(build, 4, 1, 1))
    return build.apply(max_pool, build.apply(relu, shifted), kernel=(3, 3), strides=(2, 2))


def _norm_in_parts(build: GraphBuilder) -> str:
    x = _input(build, 64, 16)
    centered = build.apply(subtract, x, build.apply(reduce_mean, x, axes=(1,), keepdims=True))
    variance = build.apply(reduce_mean, build.apply(multiply, centered, centered), axes=(1,), keepdims=True)
    return build.apply(multiply, centered, build.apply(reciprocal, build.apply(sqrt, variance)))


def _transposed_factors(build: GraphBuilder) -> str:
    query, key = _input(build, 1, 8, 2, 4), _input(build, 1, 8, 2, 5)
    key = build.apply(strided_slice, key, starts=(0, 0, 0, 1), counts=(1, 8, 2, 4), steps=(1, 1, 1, 1))
    moved = build.apply(transpose, query, axes=(0, 2, 1, 3))
    return build.apply(matmul, moved, build.apply(transpose, key, axes=(0, 2, 3, 1)))


def _through_a_view(build: GraphBuilder) -> str:
    flat = build.apply(reshape, build.apply(relu, _input(build, 4, 2, 8)), shape=(4, 16))
    return build.apply(softmax, flat)


def _cheap_beside_a_product(build: GraphBuilder) -> str:
    other = build.apply(relu, _input(build, 8, 4))
    return build.apply(add, build.apply(matmul, _input(build, 8, 16), _weight(build, 16, 4)), other)


JOINED = {
    _scaled_and_masked: ["multiply+add+softmax"],
    _residual_norm: ["add+layer_norm"],
    _pooled: ["add+relu+max_pool"],
    _norm_in_parts: ["reduce_mean+subtract+multiply+reduce_mean+sqrt+reciprocal+multiply"],
    _transposed_factors: ["strided_slice", "transpose+transpose+matmul"],
    _through_a_view: ["relu+softmax"],
    _cheap_beside_a_product: ["relu+matmul+add"],
}


def _element_wise_factor(build: GraphBuilder) -> str:
    return build.apply(matmul, build.apply(relu, _input(build, 8, 16)), _weight(build, 16, 4))


def _costly_beside_a_product(build: GraphBuilder) -> str:
    other = build.apply(exp, _input(build, 8, 4))
    return build.apply(add, build.apply(matmul, _input(build, 8, 16), _weight(build, 16, 4)), other)


def _costly_and_read_again(build: GraphBuilder) -> str:
    return build.apply(softmax, build.apply(exp, _input(build, 8, 16)))


def _under_a_window(build: GraphBuilder) -> str:
    moved = build.apply(transpose, _input(build, 1, 8, 8, 3), axes=(0, 3, 1, 2))
    return build.apply(conv, moved, _weight(build, 4, 3, 3, 3))


def _a_long_fold(build: GraphBuilder) -> str:
    x = _input(build, 1, 1 << 15)
    return build.apply(subtract, x, build.apply(reduce_mean, x, axes=(1,), keepdims=True))


APART = {
    _element_wise_factor: ["relu", "matmul"],
    _costly_beside_a_product: ["exp", "matmul+add"],
    _costly_and_read_again: ["exp", "softmax"],
    _under_a_window: ["transpose", "conv"],
    _a_long_fold: ["reduce_mean", "subtract"],
}


@pytest.mark.parametrize("make", [*JOINED, *APART], ids=lambda make: make.__name__.strip("_"))
def test_producers_join_where_it_pays(make: Callable[[GraphBuilder], str]):
    build = GraphBuilder()
    graph = build.finish({"y": make(build)})
    model = Model.of(graph, ONE_THREAD)
    assert sorted(group.name for group in model.groups) == sorted({**JOINED, **APART}[make])
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal(value.shape, np.float32) for name, value in graph.inputs.items()}
    found = compile_model(model, Meaning)(inputs)["y"]
    np.testing.assert_allclose(found, node_by_node(graph, inputs)["y"], rtol=1e-5, atol=1e-6)


def test_what_is_given_out_or_read_elsewhere_is_computed_once():
    build = GraphBuilder()
    shifted = build.apply(add, _input(build, 8, 16), _weight(build, 16))
    graph = build.finish({"y": build.apply(softmax, shifted), "z": build.apply(reduce_mean, shifted, axes=(0,), keepdims=False)})
    assert sorted(group.name for group in Model.of(graph, ONE_THREAD).groups) == ["add", "reduce_mean", "softmax"]
    given = Graph.of(graph.inputs, {"y": graph.outputs["y"], "z": shifted}, graph.nodes, graph.constants)
    assert sorted(group.name for group in Model.of(given, ONE_THREAD).groups) == ["add", "softmax"]


def test_rows_whose_places_are_data_are_read_by_what_moves_them_on():
    build = GraphBuilder()
    places = build.input("places", Value((4,), "int64"))
    taken = build.apply(gather, _input(build, 8, 16), places)
    graph = build.finish({"y": build.apply(pad, taken, before=(0, 0), after=(1, 0), value=0.0)})
    model = Model.of(graph, ONE_THREAD)
    assert [group.name for group in model.groups] == ["gather+pad"]
    inputs = {"places": np.array([5, 0, 7, 5]), "x216": np.random.default_rng(0).standard_normal((8, 16), np.float32)}
    expected = np.pad(inputs["x216"][inputs["places"]], [(0, 1), (0, 0)])
    np.testing.assert_array_equal(compile_model(model, Meaning)(inputs)["y"], expected)
