"""Inputs that are read where they are: the same results, whatever lies between their rows."""

from __future__ import annotations

import numpy as np

from ansorlite import te
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.graph.in_place import by_rows, reading_in_place, row_inputs
from ansorlite.te.tensor import Tensor
from tests.unit.graph.test_bounded import run

SHAPE, SMALLER = (2, 8, 16), (2, 5, 16)


def doubled(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j, k: x[i, j, k] * 2.0)


def totals(x: Tensor) -> Tensor:
    r = te.reduce_axis(x.shape[1])
    return te.compute((x.shape[0], x.shape[2]), lambda i, k: te.sum(x[i, r, k], axis=r))


def graph_of(*operators: te.Tensor) -> Graph:
    builder = GraphBuilder()
    name = builder.input("x", Value(SHAPE, "float32"))
    for operator in operators:
        name = builder.apply(operator, name)
    return builder.finish({"y": name})


def test_parts_of_larger_arrays_and_others() -> None:
    (row,) = row_inputs(graph_of(doubled), {"x": SMALLER})
    graph = reading_in_place(graph_of(doubled), [row])
    assert [node.operator is by_rows for node in graph.nodes] == [False]
    wide = np.random.default_rng(0).standard_normal((3, 9, 32)).astype(np.float32)
    whole, long = wide[..., :16].copy(), np.concatenate([wide[..., :16], wide[..., 16:]], axis=1)
    parts = [
        (whole[:2, :5].copy(), True),  # one after another
        (whole[:2, :5], True),  # of a larger array
        (whole[:2, 1:9:2], True),  # each second one
        (whole[:2, :8], True),  # all of them
        (wide[:2, :5, ::2], False),  # no rows
        (whole[1::-1, :3], False),  # backwards
        (long[::2, :5], False),  # too far apart
    ]
    for part, in_place in parts:
        rows, layout = row.given(part)
        assert rows.shape == row.rows
        result = run(graph, {"x": rows, row.layout: layout})
        np.testing.assert_array_equal(result[:, : part.shape[1]], 2 * part)
        assert np.may_share_memory(rows, part) == in_place


def test_what_folds_reads_a_copy() -> None:
    (row,) = row_inputs(graph_of(totals), {"x": SMALLER})
    graph = reading_in_place(graph_of(totals), [row])
    assert [node.operator is by_rows for node in graph.nodes] == [True, False]
    part = np.ones((2, 8, 16), np.float32)
    rows, layout = row.given(part)
    np.testing.assert_array_equal(run(graph, {"x": rows, row.layout: layout}), np.full((2, 16), 8.0))


def test_only_inputs_that_may_have_less_and_have_long_rows() -> None:
    graph = graph_of(doubled)
    assert not row_inputs(graph, {"x": SHAPE})
    assert not row_inputs(graph, {"x": (2, 8, 5)})
    assert not row_inputs(graph, {})
    assert reading_in_place(graph, ()) is graph
