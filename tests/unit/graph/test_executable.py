"""The memory plan and the executable: in place where that is right, and the same numbers as node by node."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ansorlite.alignment import ALIGNMENT
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import compile_model
from ansorlite.graph.fusion import FusionGroup, fuse
from ansorlite.graph.graph import Graph
from ansorlite.graph.memory import ConcatCopy, MemoryPlan, plan_memory
from ansorlite.graph.model import Model
from ansorlite.topi.activations import relu
from ansorlite.topi.elementwise import add, exp, multiply
from ansorlite.topi.matmul import gemm
from ansorlite.topi.shape import concat, reshape, strided_slice, transpose
from tests.unit.graph.support import Meaning, node_by_node


@pytest.fixture
def build() -> GraphBuilder:
    builder = GraphBuilder()
    builder.input("x", Value((1, 4, 16), "float32"))
    return builder


def _plan(graph: Graph) -> MemoryPlan:
    return plan_memory(graph, fuse(graph))


def _kinds(plan: MemoryPlan) -> list[str]:
    return [step.name if isinstance(step, FusionGroup) else "copy" for step in plan.steps]


def _agrees(graph: Graph, rtol: float = 1e-4) -> None:
    rng = np.random.default_rng(1)
    executable = compile_model(Model.of(graph), Meaning)
    for _ in range(2):
        inputs = {name: rng.standard_normal(value.shape).astype(value.dtype) for name, value in graph.inputs.items()}
        expected, result = node_by_node(graph, inputs), executable(inputs)
        assert expected.keys() == result.keys()
        for name, array in expected.items():
            np.testing.assert_allclose(result[name], array, rtol=rtol, atol=1e-4)


def test_a_chain_needs_two_buffers(build):
    value = "x"
    for axes in [(0, 2, 1), (0, 2, 1), (0, 2, 1), (0, 2, 1)]:
        value = build.apply(transpose, value, axes=axes)
    plan = _plan(build.finish({"y": value}))
    assert plan.results == {value: "y"}
    assert plan.total == 3 * 256
    assert plan.peak == 2 * 256


def test_views_lie_within_their_input(build):
    base = build.apply(relu, "x")
    part = build.apply(strided_slice, base, starts=(0, 1, 0), counts=(1, 2, 16), steps=(1, 1, 1))
    flat = build.apply(reshape, part, shape=(32,))
    graph = build.finish({"y": build.apply(exp, flat)})
    plan = _plan(graph)
    assert (plan.places[flat].root, plan.places[flat].offset) == (base, 64)
    assert _kinds(plan) == ["relu", "exp"]
    _agrees(graph)


@pytest.mark.parametrize(
    ("starts", "counts", "steps", "in_place"),
    [
        ((0, 1, 0), (1, 2, 16), (1, 1, 1), True),
        ((0, 2, 3), (1, 1, 5), (1, 1, 1), True),
        ((0, 0, 3), (1, 2, 5), (1, 1, 1), False),
        ((0, 0, 0), (1, 2, 16), (1, 2, 1), False),
        ((0, 3, 0), (1, 4, 16), (1, -1, 1), False),
    ],
)
def test_only_one_run_of_bytes_is_sliced_in_place(build, starts, counts, steps, in_place):
    part = build.apply(strided_slice, build.apply(exp, "x"), starts=starts, counts=counts, steps=steps)
    graph = build.finish({"y": build.apply(add, part, part)})
    assert ("slice" in "".join(_kinds(_plan(graph)))) == (not in_place)
    _agrees(graph)


def test_parts_are_computed_in_their_place_even_through_nested_concatenations(build):
    first, second, third = (build.apply(operator, "x") for operator in (relu, exp, relu))
    inner = build.apply(concat, first, second, axis=1)
    outer = build.apply(concat, inner, build.apply(exp, third), axis=1)
    graph = build.finish({"y": build.apply(exp, outer)})
    plan = _plan(graph)
    assert not any(isinstance(step, ConcatCopy) for step in plan.steps)
    assert (plan.places[second].root, plan.places[second].offset) == (outer, 256)
    _agrees(graph)


def test_a_part_that_is_needed_in_two_places_or_given_from_outside_is_copied(build):
    part = build.apply(relu, "x")
    left = build.apply(concat, part, part, axis=1)
    right = build.apply(concat, "x", part, build.constant(np.ones((1, 1, 16), np.float32)), axis=1)
    graph = build.finish({"a": build.apply(exp, left), "b": build.apply(exp, right)})
    assert _kinds(_plan(graph)).count("copy") == 1 + 3
    _agrees(graph)


def test_outputs_may_be_inputs_constants_views_and_inner_values(build):
    inner = build.apply(relu, "x")
    ones = build.constant(np.ones(3, np.float32))
    view = build.apply(reshape, "x", shape=(64,))
    graph = build.finish({"a": "x", "b": ones, "c": view, "d": inner, "e": build.apply(exp, inner)})
    _agrees(graph)


def test_results_belong_to_the_caller(build):
    executable = compile_model(Model.of(build.finish({"y": build.apply(relu, "x")})), Meaning)
    first = executable(np.ones((1, 4, 16), np.float32))["y"]
    executable(x=np.zeros((1, 4, 16), np.float32))
    np.testing.assert_array_equal(first, 1)


def test_a_call_takes_a_mapping_names_or_positions(build):
    build.input("z", Value((16,), "float32"))
    executable = compile_model(Model.of(build.finish({"y": build.apply(add, "x", "z")})), Meaning)
    x, z = np.ones((1, 4, 16), np.float32), np.arange(16, dtype=np.float32)
    for result in (executable({"x": x, "z": z}), executable(x, z), executable(x, z=z), executable(x=x, z=z)):
        np.testing.assert_array_equal(result["y"], x + z)
    assert executable.steps == 1


def _random_graph(rng: np.random.Generator, nodes: int) -> Graph:
    """Element-wise operators, products, views, slices and concatenations on rows of 8, at random."""
    build = GraphBuilder()
    values = [build.input(f"x{n}", Value((int(rng.integers(1, 4)), 8), "float32")) for n in range(2)]
    for _ in range(nodes):
        pick = str(rng.choice(values[-6:]))
        rows, columns = build.value(pick).shape
        kind = int(rng.integers(9))
        if kind == 0:
            values.append(build.apply(relu, pick))
        elif kind in (1, 2):
            scale = rng.standard_normal(8 if rng.random() < 0.5 else 1).astype(np.float32)
            values.append(build.apply(multiply if kind == 1 else add, pick, build.constant(scale)))
        elif kind == 3:
            alike = [v for v in values if build.value(v).shape == (rows, columns)]
            values.append(build.apply(add, pick, str(rng.choice(alike))))
        elif kind == 4:
            weight = (rng.standard_normal((8, 8)) / 3).astype(np.float32)
            values.append(build.apply(gemm, pick, build.constant(weight), transpose_b=bool(rng.random() < 0.5)))
        elif kind == 5 and rows < 12:
            values.append(build.apply(concat, pick, str(rng.choice(values)), axis=0))
        elif kind == 6:
            start = int(rng.integers(rows))
            count = int(rng.integers(1, rows - start + 1))
            values.append(build.apply(strided_slice, pick, starts=(start, 0), counts=(count, 8), steps=(1, 1)))
        elif kind == 7:
            flat = build.apply(reshape, pick, shape=(8, rows))
            values.append(build.apply(reshape, build.apply(transpose, flat, axes=(1, 0)), shape=(rows, 8)))
        elif kind == 8:
            half = build.apply(strided_slice, pick, starts=(0, 4), counts=(rows, 4), steps=(1, 1))
            values.append(build.apply(concat, half, half, axis=1))
    return build.finish({f"y{n}": str(name) for n, name in enumerate(rng.choice(values, 3))})


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_keep_their_numbers(seed):
    graph = _random_graph(np.random.default_rng(seed), nodes=4 + seed)
    _agrees(graph, rtol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_buffers_that_live_at_the_same_time_never_overlap(seed):
    graph = _random_graph(np.random.default_rng(100 + seed), nodes=25)
    plan = _plan(graph)
    lives: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps):
        for name in (step.source, step.target) if isinstance(step, ConcatCopy) else (*step.inputs, step.output):
            if name in plan.places:
                lives.setdefault(plan.places[name].root, []).append(number)
    for name in graph.outputs.values():
        if name in plan.places:
            lives.setdefault(plan.places[name].root, []).append(len(plan.steps))
    sizes = {root: int(np.prod(graph.values[root].shape)) * 4 for root in plan.offsets}
    for a, b in itertools.combinations(plan.offsets, 2):
        apart = max(lives[a]) < min(lives[b]) or max(lives[b]) < min(lives[a])
        assert apart or plan.offsets[a] + sizes[a] <= plan.offsets[b] or plan.offsets[b] + sizes[b] <= plan.offsets[a]
    assert all(offset % ALIGNMENT == 0 for offset in plan.offsets.values())
    assert plan.peak <= sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes.values())
