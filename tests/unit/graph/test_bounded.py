"""One graph for every size up to a bound: what it computes at the places that count is what the graph of that size does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from ansorlite import te
from ansorlite.graph.bounded import bounded
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.tensor import Tensor

Operator = Callable[[Tensor], Tensor]

MANY = 8


def graph_of(operator: Operator, rows: int, constants: Mapping[str, np.ndarray] | None = None) -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", Value((rows, 4), "float32"))
    more = [builder.constant(array, name) for name, array in (constants or {}).items()]
    return builder.finish({"y": builder.apply(operator, x, *more)})


def run(graph: Graph, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    values = {**graph.constants, **inputs}
    for node in graph.nodes:
        tensors = [te.placeholder(values[name].shape, values[name].dtype.name) for name in node.inputs]
        dag = ComputeDAG.of([*tensors, node.operator(*tensors, **dict(node.attributes))])
        values[node.output] = evaluate(dag, [values[name] for name in node.inputs])[0]
    return values[graph.outputs["y"]]


def check(operator: Operator, constants: Callable[[int], Mapping[str, np.ndarray]] = lambda _: {}) -> None:
    """All sizes have one graph, and garbage beyond their places does not matter."""
    large = graph_of(operator, MANY, constants(MANY))
    operators = set()
    for few in range(2, MANY):
        small = graph_of(operator, few, constants(few))
        found = bounded(small, large, "rows", (few, MANY))
        assert found is not None
        graph, size = found
        assert size is not None
        operators.add(tuple((node.output, node.operator, node.inputs) for node in graph.nodes))
        x = np.random.default_rng(few).standard_normal((MANY, 4)).astype(np.float32)
        x[few:] = np.nan
        expected = run(small, {"x": x[:few]})
        result = run(graph, {"x": x, size: np.array(few)})
        np.testing.assert_allclose(result[tuple(map(slice, expected.shape))], expected, rtol=1e-6)
        x[few:] = 1
        np.testing.assert_allclose(run(graph, {"x": x, size: np.array(MANY)}), run(large, {"x": x}), rtol=1e-6)
    assert len(operators) == 1


def summed(x: Tensor) -> Tensor:
    k = te.reduce_axis(x.shape[0])
    return te.compute((4,), lambda j: te.sum(x[k, j], axis=k))


def largest(x: Tensor) -> Tensor:
    k = te.reduce_axis(x.shape[0])
    return te.compute((4,), lambda j: te.max(x[k, j], axis=k))


def multiplied(x: Tensor) -> Tensor:
    k = te.reduce_axis(x.shape[0])
    return te.compute((4, 4), lambda i, j: te.sum(x[k, i] * x[k, j], axis=k))


def windows(x: Tensor) -> Tensor:
    """The row before, a row and the row after; zero outside."""
    k = te.reduce_axis(3)

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        place = i + k - 1
        inside = (place >= 0) & (place < x.shape[0])
        return te.sum(te.if_then_else(inside, x[place, j], 0.0), axis=k)

    return te.compute(x.shape, element)


def flipped(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[x.shape[0] - 1 - i, j])


def last(x: Tensor) -> Tensor:
    return te.compute((4,), lambda j: x[x.shape[0] - 1, j])


def twice(x: Tensor) -> Tensor:
    n = x.shape[0]
    return te.compute((2 * n, 4), lambda i, j: te.if_then_else(i < n, x[i, j], x[i - n, j]))


def flat(x: Tensor) -> Tensor:
    """A column after the other."""
    n = x.shape[0]
    return te.compute((4 * n,), lambda i: x[i % n, i // n])


def mean(x: Tensor) -> Tensor:
    k = te.reduce_axis(x.shape[0])
    sums = te.compute((4,), lambda j: te.sum(x[k, j], axis=k))
    return te.compute((4,), lambda j: sums[j] / float(x.shape[0]))


def mean_by_reciprocal(x: Tensor) -> Tensor:
    k = te.reduce_axis(x.shape[0])
    sums = te.compute((4,), lambda j: te.sum(x[k, j], axis=k))
    return te.compute((4,), lambda j: sums[j] * (1 / x.shape[0]))


def softmax(x: Tensor) -> Tensor:
    k, m = te.reduce_axis(x.shape[0]), te.reduce_axis(x.shape[0])
    top = te.compute((4,), lambda j: te.max(x[k, j], axis=k))
    powers = te.compute(x.shape, lambda i, j: te.exp(x[i, j] - top[j]))
    sums = te.compute((4,), lambda j: te.sum(powers[m, j], axis=m))
    return te.compute(x.shape, lambda i, j: powers[i, j] / sums[j])


@pytest.mark.parametrize(
    "operator",
    [summed, largest, multiplied, windows, flipped, last, twice, flat, mean, mean_by_reciprocal, softmax],
)
def test_a_graph_for_every_size(operator: Operator) -> None:
    check(operator)


def test_constants_that_follow_from_the_size() -> None:
    def picked(x: Tensor, places: Tensor) -> Tensor:
        return te.compute((2, 4), lambda i, j: x[places[i], j])

    check(picked, lambda rows: {"places": np.array([rows - 1, rows - 2])})


def squares(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] * float(x.shape[0] ** 2))


def halves(x: Tensor) -> Tensor:
    return te.compute((x.shape[0] // 2 + 1, 4), lambda i, j: x[i, j] + float(x.shape[0] // 2))


def two_ways(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] * 2.0 if x.shape[0] > 5 else x[i, j] + 1.0)


@pytest.mark.parametrize("operator", [squares, halves, two_ways])
def test_sizes_that_one_graph_does_not_serve(operator: Operator) -> None:
    """From 3 and 8 rows no graph follows, or one that is not that of 5 and 8."""
    large = graph_of(operator, MANY)
    found = [bounded(graph_of(operator, few), large, "rows", (few, MANY)) for few in (3, 5)]
    graphs = [each[0] for each in found if each is not None]
    assert len({tuple(node.operator for node in graph.nodes) for graph in graphs}) == len(graphs)


def test_other_constants_have_no_graph() -> None:
    def added(x: Tensor, y: Tensor) -> Tensor:
        return te.compute(x.shape, lambda i, j: x[i, j] + y[i, j])

    def made(rows: int) -> Graph:
        return graph_of(added, rows, {"y": np.full((rows, 4), 1 / rows, np.float32)})

    assert bounded(made(3), made(MANY), "rows", (3, MANY)) is None


def test_rows_that_do_not_depend_on_one_another_need_no_size() -> None:
    def scaled(x: Tensor) -> Tensor:
        return te.compute(x.shape, lambda i, j: x[i, j] * 2.0)

    large = graph_of(scaled, MANY)
    found = bounded(graph_of(scaled, 3), large, "rows", (3, MANY))
    assert found is not None
    graph, size = found
    assert size is None
    assert graph.nodes == large.nodes
