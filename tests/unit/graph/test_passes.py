"""Every pass on the smallest graph that shows it: the nodes that are left, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.constants import combine, is_splat, reshaped, splat
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.graph.passes import PASSES, optimize
from ansorlite.graph.passes.affine import combine_affine
from ansorlite.graph.passes.assigned_slices import simplify_assigned_slices
from ansorlite.graph.passes.cleanup import (
    eliminate_common_subexpressions,
    eliminate_dead_nodes,
    merge_equal_constants,
    simplify_views,
)
from ansorlite.graph.passes.fold_constants import fold_constants
from ansorlite.graph.passes.fold_scales import fold_scales_into_weights
from ansorlite.graph.passes.scales_of_products import scale_products
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.elementwise import add, cast, exp, multiply, subtract
from ansorlite.topi.indexing import Scatter, slice_scatter
from ansorlite.topi.matmul import gemm, matmul
from ansorlite.topi.shape import broadcast_to, reshape, strided_slice, transpose
from tests.unit.graph.support import node_by_node, operators


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _same_numbers(before: Graph, after: Graph, rtol: float = 1e-5) -> None:
    inputs = {name: f32(*value.shape, seed=99) for name, value in before.inputs.items()}
    expected, result = node_by_node(before, inputs), node_by_node(after, inputs)
    assert expected.keys() == result.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(result[name], array, rtol=rtol, atol=1e-5)


@pytest.fixture
def build() -> GraphBuilder:
    builder = GraphBuilder()
    builder.input("x", Value((2, 3, 4, 4), "float32"))
    return builder


def test_dead_nodes_go(build):
    y = build.apply(relu, "x")
    build.apply(exp, build.apply(exp, "x"))
    graph = build.finish({"y": y})
    assert operators(graph) == ["relu", "exp", "exp"]
    assert operators(eliminate_dead_nodes(graph)) == ["relu"]


def test_an_input_that_is_an_output_needs_no_node(build):
    build.apply(exp, "x")
    graph = eliminate_dead_nodes(build.finish({"y": "x"}))
    assert operators(graph) == []
    assert graph.outputs == {"y": "x"}


def test_equal_nodes_become_one_through_their_inputs(build):
    left, right = (build.apply(relu, build.apply(exp, "x")) for _ in range(2))
    graph = build.finish({"y": build.apply(add, left, right), "z": right})
    after = eliminate_common_subexpressions(graph)
    assert operators(after) == ["exp", "relu", "add"]
    assert after.nodes[-1].inputs == (left, left)
    assert after.outputs["z"] == left
    _same_numbers(graph, after)


def test_nodes_with_other_attributes_are_kept_apart(build):
    parts = [build.apply(reshape, "x", shape=shape) for shape in ((96,), (8, 12))]
    graph = build.finish(dict(zip("yz", parts, strict=True)))
    assert len(eliminate_common_subexpressions(graph).nodes) == 2


def test_constants_of_the_same_bytes_become_one(build):
    one, same, negated = (build.constant(array) for array in (f32(3, 1, 1), f32(3, 1, 1), -f32(3, 1, 1)))
    twos, again = (build.constant(splat(np.float32(2), (8, 1000))) for _ in range(2))
    almost = build.constant(np.full((8, 1000), 2, np.float32))
    total = build.apply(add, build.apply(add, build.apply(add, "x", one), same), negated)
    product = build.apply(multiply, build.apply(multiply, twos, again), almost)
    graph = build.finish({"y": total, "z": product})
    after = merge_equal_constants(graph)
    assert [node.inputs[1] for node in after.nodes] == [one, one, negated, twos, almost]
    assert {same, again} & after.constants.keys() == set()
    _same_numbers(graph, after)


def test_the_steps_of_a_network_share_constants_that_passes_have_made(build):
    weight, bias, more = (build.constant(f32(*shape, seed=seed)) for shape, seed in (((4, 4), 1), ((4,), 2), ((4,), 3)))
    value = "x"
    for _ in range(3):
        value = build.apply(matmul, value, weight)
        value = build.apply(add, build.apply(add, value, bias), more)
    after = optimize(build.finish({"y": value}))
    assert len({node.inputs for node in after.nodes}) == 6
    assert len(after.constants) == 2


@pytest.mark.parametrize("rewrite", PASSES)
def test_a_pass_that_finds_nothing_gives_the_same_graph(build, rewrite):
    graph = build.finish({"y": build.apply(relu, build.apply(conv, "x", build.constant(f32(4, 3, 3, 3))))})
    assert rewrite(graph) is graph


def test_views_of_views_read_the_origin_and_empty_views_go(build):
    flat = build.apply(reshape, "x", shape=(96,))
    again = build.apply(reshape, flat, shape=(8, 12))
    back = build.apply(reshape, again, shape=(2, 3, 4, 4))
    graph = build.finish({"y": build.apply(relu, back), "z": build.apply(exp, again), "w": back})
    after = simplify_views(graph)
    assert operators(after) == ["reshape", "relu", "exp"]
    assert after.nodes[0].inputs == ("x",)
    assert after.outputs["w"] == "x"
    _same_numbers(graph, after)


def test_constants_are_folded_and_unused_ones_dropped(build):
    weight = build.constant(f32(3, 1, 1))
    graph = build.finish({"y": build.apply(multiply, "x", build.apply(exp, build.apply(exp, weight)))})
    after = fold_constants(graph)
    assert operators(after) == ["multiply"]
    assert weight not in after.constants
    _same_numbers(graph, after)


def test_folding_makes_no_small_constant_a_huge_one(build):
    one = build.constant(np.ones((1, 1), np.float32))
    huge = build.apply(broadcast_to, one, shape=(1000, 1000))
    graph = build.finish({"y": huge})
    assert operators(fold_constants(graph)) == ["broadcast_to"]


def test_a_repeated_value_stays_small_through_reshapes():
    repeated = splat(np.float32(2), (1000, 1000))
    assert repeated.strides == (0, 0)
    assert is_splat(reshaped(repeated, (10, 100, 1000)))
    assert is_splat(combine(np.multiply, repeated, splat(np.float32(3), (1000, 1))))
    assert not is_splat(combine(np.multiply, repeated, f32(1000, 1)))


@pytest.mark.parametrize(
    ("chain", "left"),
    [
        ([multiply, multiply], ["multiply"]),
        ([add, add], ["add"]),
        ([add, subtract], ["add"]),
        ([multiply, add], ["multiply", "add"]),
        ([add, multiply], ["multiply", "add"]),
        ([multiply, add, multiply, add], ["multiply", "add"]),
        ([add, multiply, multiply, subtract, add, multiply], ["multiply", "add"]),
    ],
)
def test_chains_of_scales_and_shifts(build, chain, left):
    value = "x"
    for n, operator in enumerate(chain):
        value = build.apply(operator, value, build.constant(f32(3, 1, 1, seed=n)))
    graph = build.finish({"y": build.apply(relu, value)})
    after = combine_affine(graph)
    assert operators(after) == [*left, "relu"]
    _same_numbers(graph, after, rtol=1e-4)


def test_a_value_that_others_read_keeps_its_numbers(build):
    shifted = build.apply(add, "x", build.constant(f32(3, 1, 1)))
    scaled = build.apply(multiply, shifted, build.constant(f32(3, 1, 1, seed=1)))
    graph = build.finish({"y": scaled, "z": build.apply(exp, shifted)})
    _same_numbers(graph, combine_affine(graph))
    graph = build.finish({"y": scaled, "z": shifted})
    _same_numbers(graph, combine_affine(graph))


def test_neutral_scales_and_shifts_go_and_what_follows_is_kept_apart(build):
    first = build.apply(add, "x", build.constant(f32(3, 1, 1)))
    neutral = build.apply(multiply, first, build.constant(np.ones((1,), np.float32)))
    ends = [build.apply(multiply, neutral, build.constant(f32(3, 1, 1, seed=n))) for n in (1, 2)]
    graph = build.finish(dict(zip("ab", ends, strict=True)))
    after = combine_affine(graph)
    assert "multiply" in operators(after)
    assert len(after.nodes) < len(graph.nodes)
    _same_numbers(graph, after)
    _same_numbers(graph, combine_affine(after))


def test_a_constant_that_widens_the_value_is_left_alone(build):
    wide = build.apply(multiply, build.apply(multiply, "x", build.constant(f32(5, 2, 3, 4, 4))), build.constant(f32(1)))
    graph = build.finish({"y": wide})
    _same_numbers(graph, combine_affine(graph))


@pytest.mark.parametrize(
    ("operator", "weight", "scale", "attributes"),
    [
        (conv, (5, 3, 3, 3), (5, 1, 1), {}),
        (conv, (6, 1, 3, 3), (1, 6, 1, 1), {"groups": 3}),
        (conv, (5, 3, 3, 3), (), {}),
        (conv_transpose, (3, 5, 3, 3), (5, 1, 1), {}),
    ],
)
def test_scales_move_into_convolution_weights(build, operator, weight, scale, attributes):
    result = build.apply(operator, "x", build.constant(f32(*weight)), **attributes)
    graph = build.finish({"y": build.apply(multiply, build.constant(f32(*scale, seed=1)), result)})
    after = fold_scales_into_weights(graph)
    assert operators(after) == [operator.__name__]
    _same_numbers(graph, after, rtol=1e-4)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("operator", [gemm, matmul])
def test_scales_move_into_matrices(operator, transpose_b):
    build = GraphBuilder()
    build.input("x", Value((4, 6), "float32"))
    attributes = {"transpose_b": transpose_b} if operator is gemm else {}
    weight = f32(7, 6) if operator is gemm and transpose_b else f32(6, 7)
    result = build.apply(operator, "x", build.constant(weight), **attributes)
    graph = build.finish({"y": build.apply(multiply, result, build.constant(f32(7, seed=1)))})
    after = fold_scales_into_weights(graph)
    assert operators(after) == [operator.__name__]
    _same_numbers(graph, after, rtol=1e-4)


@pytest.mark.parametrize("scale", [(4, 4), (5, 4, 1), (2, 1, 1, 1)])
def test_scales_of_other_than_channels_stay(build, scale):
    result = build.apply(conv, "x", build.constant(f32(5, 3, 1, 1)))
    graph = build.finish({"y": build.apply(multiply, result, build.constant(f32(*scale)))})
    assert operators(fold_scales_into_weights(graph)) == ["conv", "multiply"]


def test_a_convolution_that_others_read_keeps_its_weight(build):
    result = build.apply(conv, "x", build.constant(f32(5, 3, 1, 1)))
    graph = build.finish({"y": build.apply(multiply, result, build.constant(f32(5, 1, 1))), "z": result})
    assert operators(fold_scales_into_weights(graph)) == ["conv", "multiply"]


def test_all_passes_leave_convolution_and_bias_of_batch_normalisation(build):
    result = build.apply(conv, "x", build.constant(f32(5, 3, 3, 3)), before=(1, 1), after=(1, 1))
    result = build.apply(add, result, build.constant(f32(5, 1, 1)))
    for n in range(2):
        result = build.apply(multiply, result, build.constant(f32(5, 1, 1, seed=n + 1)))
        result = build.apply(add, result, build.constant(f32(5, 1, 1, seed=n + 5)))
    graph = build.finish({"y": build.apply(relu, result)})
    after = optimize(graph)
    assert operators(after) == ["conv", "add", "relu"]
    _same_numbers(graph, after, rtol=1e-3)


def test_numbers_that_operands_are_multiplied_by_go_to_the_product(build):
    half, third = (build.constant(np.array([value], np.float32)) for value in (0.5, 0.3))
    left, right = build.apply(multiply, "x", half), build.apply(multiply, third, build.apply(relu, "x"))
    graph = build.finish({"y": build.apply(matmul, left, right)})
    after = scale_products(graph)
    assert operators(after) == ["relu", "matmul", "multiply"]
    assert after.constants[after.nodes[-1].inputs[1]] == np.float32(0.5) * np.float32(0.3)
    _same_numbers(graph, after)


def test_scales_of_half_precision_stay(build):
    half = build.apply(cast, "x", dtype="float16")
    scaled = build.apply(multiply, half, build.constant(np.array([0.3], np.float16)))
    graph = build.finish({"y": build.apply(matmul, scaled, half)})
    assert operators(scale_products(graph)) == operators(graph)


def test_a_scale_for_each_column_and_a_scaled_value_that_is_read_again_stay(build):
    columns = build.apply(multiply, "x", build.constant(f32(4)))
    twice = build.apply(multiply, "x", build.constant(np.array([2], np.float32)))
    graph = build.finish({"y": build.apply(matmul, columns, twice), "z": build.apply(relu, twice)})
    assert operators(scale_products(graph)) == operators(graph)


def _sliced(build: GraphBuilder, x: str, start: int, count: int, step: int = 1) -> str:
    return build.apply(strided_slice, x, starts=(0, start, 0, 0), counts=(2, count, 4, 4), steps=(1, step, 1, 1))


def test_slices_are_assigned_to_before_transposes(build):
    axes = (1, 0, 3, 2)
    update = build.constant(f32(2, 2, 4, 4), "u")
    whole, part = (build.apply(transpose, value, axes=axes) for value in ("x", update))
    assigned = build.apply(slice_scatter, whole, part, axis=0, start=1)
    graph = build.finish({"y": build.apply(transpose, assigned, axes=axes)})
    result = simplify_assigned_slices(graph)
    assert operators(result) == ["slice_scatter"]
    assert result.nodes[0].attribute("axis") == 1
    _same_numbers(graph, result)


def test_what_is_transposed_otherwise_stays_so(build):
    square = build.constant(f32(4, 2, 3, 4), "u")
    whole = build.apply(transpose, "x", axes=(2, 0, 1, 3))
    graph = build.finish({"y": build.apply(slice_scatter, whole, square, axis=0, start=0)})
    assert simplify_assigned_slices(graph) is graph
    other = build.apply(transpose, build.constant(f32(2, 2, 3, 4), "v"), axes=(1, 0, 2, 3))
    graph = eliminate_dead_nodes(build.finish({"y": build.apply(slice_scatter, whole, other, axis=0, start=1)}))
    assert simplify_assigned_slices(graph) is graph


def test_transposes_of_transposes_are_one(build):
    once = build.apply(transpose, "x", axes=(3, 0, 1, 2))
    twice = build.apply(transpose, once, axes=(3, 0, 1, 2))
    back = build.apply(transpose, once, axes=(1, 2, 3, 0))
    graph = build.finish({"y": build.apply(relu, twice), "z": build.apply(exp, back)})
    result = simplify_assigned_slices(graph)
    assert operators(result) == ["transpose", "relu", "exp"]
    assert result.nodes[0].attribute("axes") == (2, 3, 0, 1)
    _same_numbers(graph, result)


@pytest.mark.parametrize(("start", "step"), [(1, 1), (0, 2)])
def test_a_slice_that_is_assigned_what_it_is_stays(build, start, step):
    """``x[:, 1:] += u`` is exported as an addition to a part of ``x``, put to it twice."""
    part = _sliced(build, "x", start, 2, step)
    first = build.apply(slice_scatter, "x", build.apply(exp, part), axis=1, start=start, step=step)
    again = build.apply(slice_scatter, first, _sliced(build, first, start, 2, step), axis=1, start=start, step=step)
    graph = build.finish({"y": build.apply(relu, again)})
    result = simplify_assigned_slices(graph)
    assert operators(result) == ["strided_slice", "exp", "slice_scatter", "relu"]
    _same_numbers(graph, result)


def test_what_is_assigned_over_goes(build):
    values = [build.constant(f32(2, 2, 4, 4, seed=n), f"u{n}") for n in range(2)]
    first = build.apply(slice_scatter, "x", values[0], axis=1, start=1)
    second = build.apply(slice_scatter, first, values[1], axis=1, start=1)
    third = build.apply(slice_scatter, second, values[1], axis=1, start=1)
    graph = build.finish({"y": build.apply(relu, third)})
    result = simplify_assigned_slices(graph)
    assert operators(result) == ["slice_scatter", "relu"]
    _same_numbers(graph, result)


def test_other_slices_and_sums_are_not_what_was_assigned(build):
    values = [build.constant(f32(2, 2, 4, 4, seed=n), f"u{n}") for n in range(2)]
    apart = build.apply(slice_scatter, build.apply(slice_scatter, "x", values[0], axis=1, start=0), values[1], axis=1, start=1)
    added = build.apply(slice_scatter, "x", values[0], axis=1, start=1, mode=Scatter.ADD)
    twice = build.apply(slice_scatter, added, values[0], axis=1, start=1, mode=Scatter.ADD)
    less = _sliced(build, build.apply(slice_scatter, "x", values[0], axis=1, start=0), 0, 1)
    graph = build.finish({"a": apart, "b": twice, "c": _sliced(build, twice, 1, 2), "d": less})
    assert simplify_assigned_slices(graph) is graph
