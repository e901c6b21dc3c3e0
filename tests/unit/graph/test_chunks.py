"""Large values between two products are made and used up in parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorlite.alignment import ALIGNMENT
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.chunks import run_in_chunks
from ansorlite.graph.dependence import dimensions_in_step
from ansorlite.graph.describe import Value
from ansorlite.graph.executable import compile_model
from ansorlite.graph.graph import Graph
from ansorlite.graph.model import Model
from ansorlite.target import Target, resolve
from ansorlite.topi.activations import relu
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import add, multiply
from ansorlite.topi.matmul import matmul
from ansorlite.topi.patterns import triangle
from ansorlite.topi.shape import strided_slice, transpose
from ansorlite.topi.softmax import softmax
from tests.unit.graph.support import Meaning, node_by_node, operators


def _value(*shape: int) -> Value:
    return Value(shape, "float32")


def _target(l2: int) -> Target:
    """One thread, and a second cache of so many bytes: a quarter of it is what a chunk may take."""
    return replace(resolve("llvm"), threads=1, l2=l2)


def _attention(
    batch: int, heads: int, rows: int, width: int, *, mask: tuple[int, ...] | None = None, causal: bool = False
) -> Graph:
    build = GraphBuilder()
    query, value = (build.input(name, _value(batch, heads, rows, width)) for name in ("q", "v"))
    scores = build.apply(matmul, query, build.input("k", _value(batch, heads, width, rows)))
    if mask is not None:
        scores = build.apply(
            add, build.apply(multiply, scores, build.constant(np.float32([0.5]))), build.input("m", _value(*mask))
        )
    if causal:
        scores = build.apply(triangle, scores, upper=False)
    return build.finish({"y": build.apply(matmul, build.apply(softmax, scores), value)})


def _inputs(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(value.shape, np.float32) for name, value in graph.inputs.items()}


def _chunks(graph: Graph) -> list[tuple[int, ...]]:
    """The shapes of the scores that are computed at a time."""
    return [graph.values[node.output].shape for node in graph.nodes if node.operator is softmax]


@pytest.mark.parametrize(
    ("graph", "l2", "chunk"),
    [
        (_attention(1, 6, 32, 8), 4 * 3 * 32 * 32 * 4, (1, 3, 32, 32)),
        (_attention(1, 6, 32, 8), 4 * 32 * 32 * 4, (1, 1, 32, 32)),
        (_attention(2, 2, 32, 8), 4 * 2 * 32 * 32 * 4, (1, 2, 32, 32)),
        (_attention(1, 2, 64, 8, mask=(1, 1, 1, 64)), 4 * 16 * 64 * 4, (1, 1, 16, 64)),
        (_attention(2, 2, 64, 8, mask=(2, 1, 64, 64)), 4 * 32 * 64 * 4, (1, 1, 32, 64)),
        (_attention(1, 2, 37, 8), 4 * 16 * 37 * 4, (1, 1, 37, 37)),
    ],
    ids=["heads", "one-head", "batch", "rows", "rows-and-mask", "odd-rows"],
)
def test_attention_runs_in_chunks_of_scores(graph, l2, chunk):
    target = _target(l2)
    cut = run_in_chunks(graph, target)
    assert set(_chunks(cut)) == {chunk}
    inputs = _inputs(graph)
    expected = node_by_node(graph, inputs)["y"]
    np.testing.assert_allclose(node_by_node(cut, inputs)["y"], expected, rtol=1e-5, atol=1e-6)
    model = Model.of(graph, target)
    executable = compile_model(model, Meaning)
    np.testing.assert_allclose(executable(inputs)["y"], expected, rtol=1e-5, atol=1e-6)
    # All chunks are the same tasks, their parts are views, and one chunk's place is the next one's.
    assert len(model.tasks) == len(model.groups) // len(_chunks(cut)) == 3
    assert len(executable.plan.steps) == len(model.groups)
    assert executable.plan.peak <= executable.plan.total / len(_chunks(cut)) + ALIGNMENT


def test_what_fits_stays_whole():
    graph = _attention(1, 2, 32, 8)
    assert run_in_chunks(graph, _target(4 * 2 * 32 * 32 * 4)) is graph


def test_scores_that_know_where_they_are_are_cut_along_heads_only():
    cut = run_in_chunks(_attention(1, 2, 64, 8, causal=True), _target(4 * 16 * 64 * 4))
    assert set(_chunks(cut)) == {(1, 1, 64, 64)}


def test_scores_that_something_else_reads_too_stay_whole():
    build = GraphBuilder()
    scores = build.apply(matmul, build.input("q", _value(1, 2, 32, 8)), build.input("k", _value(1, 2, 8, 32)))
    result = build.apply(matmul, build.apply(softmax, scores), build.input("v", _value(1, 2, 32, 8)))
    graph = build.finish({"y": result, "scores": scores})
    assert run_in_chunks(graph, _target(64)) is graph


def test_weights_that_would_be_read_again_for_every_chunk_keep_a_chain_whole():
    build = GraphBuilder()
    rng = np.random.default_rng(0)
    first, second = (build.constant(rng.standard_normal(shape, np.float32)) for shape in ((64, 96), (96, 64)))
    hidden = build.apply(relu, build.apply(matmul, build.input("x", _value(64, 64)), first))
    graph = build.finish({"y": build.apply(matmul, hidden, second)})
    assert operators(run_in_chunks(graph, _target(4 * 16 * 96 * 4))) == ["matmul", "relu", "matmul"]


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "expected"),
    [
        (matmul, [(2, 4, 8), (2, 8, 5)], (), [(0, 0), (1, None), (None, 2)]),
        (matmul, [(2, 4, 8), (8, 5)], (), [(0, None), (1, None), (None, 1)]),
        (softmax, [(4, 8)], (), [(0,), None]),
        (add, [(4, 8), (1, 8)], (), [(0, None), (1, 1)]),
        (transpose, [(4, 8)], (("axes", (1, 0)),), [(1,), (0,)]),
        (conv, [(2, 4, 5, 5), (6, 2, 3, 3)], (("groups", 2),), [(0, None), None, None, None]),
        (triangle, [(3, 4, 4)], (("upper", True),), [(0,), None, None]),
        (strided_slice, [(4, 8)], (("starts", (0, 0)), ("counts", (4, 3)), ("steps", (1, 1))), [(0,), None]),
    ],
)
def test_dimensions_in_step_are_read_off_the_expressions(operator, shapes, attributes, expected):
    values = tuple(_value(*shape) for shape in shapes)
    assert [dimensions_in_step(operator, values, attributes, d) for d in range(len(expected))] == expected
