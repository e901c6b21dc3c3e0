"""Which graphs are other ones on fewer elements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from ansorlite import te
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.graph.restriction import is_restriction
from ansorlite.te.tensor import Tensor

Operator = Callable[[Tensor], Tensor]


def _graph(operator: Operator, rows: int) -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", Value((rows, 4), "float32"))
    return builder.finish({"y": builder.apply(operator, x)})


def scaled(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] * 2.0)


def summed_rows(x: Tensor) -> Tensor:
    k = te.reduce_axis(4)
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, k], axis=k))


def summed_columns(x: Tensor) -> Tensor:
    k = te.reduce_axis(x.shape[0])
    return te.compute((4,), lambda j: te.sum(x[k, j], axis=k))


def flipped(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[x.shape[0] - 1 - i, j])


def merged(x: Tensor) -> Tensor:
    return te.compute((x.shape[0] * 4,), lambda i: x[i // 4, i % 4])


def mean(x: Tensor) -> Tensor:
    """The number of rows is in the values."""
    return te.compute(x.shape, lambda i, j: x[i, j] / float(x.shape[0]))


def shifted(x: Tensor) -> Tensor:
    """The row after; the last one reads itself."""
    return te.compute(x.shape, lambda i, j: te.if_then_else(i < x.shape[0] - 1, x[i + 1, j], x[i, j]))


def first_rows(x: Tensor) -> Tensor:
    return te.compute((2, 4), lambda i, j: x[i, j])


def two_steps(x: Tensor) -> Tensor:
    squares = te.compute(x.shape, lambda i, j: x[i, j] * x[i, j])
    k = te.reduce_axis(4)
    sums = te.compute((x.shape[0],), lambda i: te.sum(squares[i, k], axis=k))
    return te.compute(x.shape, lambda i, j: x[i, j] / sums[i])


@pytest.mark.parametrize("operator", [scaled, summed_rows, merged, first_rows, two_steps])
def test_rows_that_do_not_depend_on_one_another(operator: Operator) -> None:
    for few, many in pairwise((2, 3, 5, 8)):
        assert is_restriction(_graph(operator, few), _graph(operator, many))
        assert not is_restriction(_graph(operator, many), _graph(operator, few))


@pytest.mark.parametrize("operator", [summed_columns, flipped, mean, shifted])
def test_rows_that_depend_on_one_another_or_on_their_number(operator: Operator) -> None:
    for few, many in pairwise((2, 3, 5, 8)):
        assert not is_restriction(_graph(operator, few), _graph(operator, many))


def test_a_single_row_is_read_at_zero_or_at_its_axis() -> None:
    def broadcast(x: Tensor) -> Tensor:
        return te.compute(x.shape, lambda i, j: x[0 if x.shape[0] == 1 else i, j])

    assert is_restriction(_graph(broadcast, 1), _graph(broadcast, 8))


def _with_constant(rows: int, constant: np.ndarray) -> Graph:
    def add(x: Tensor, y: Tensor) -> Tensor:
        return te.compute(x.shape, lambda i, j: x[i, j] + y[i, j])

    builder = GraphBuilder()
    x = builder.input("x", Value((rows, 4), "float32"))
    return builder.finish({"y": builder.apply(add, x, builder.constant(constant))})


def test_constants_begin_alike() -> None:
    positions = np.arange(32, dtype=np.float32).reshape(8, 4)
    assert is_restriction(_with_constant(3, positions[:3]), _with_constant(8, positions))
    assert not is_restriction(_with_constant(3, positions[:3]), _with_constant(8, positions[::-1]))
    assert not is_restriction(_with_constant(3, positions[:3]), _with_constant(8, np.roll(positions, 1, axis=1)))


def _looked_up(rows: int, step: int, where: np.ndarray | None = None) -> Graph:
    """Rows of a table, at places that are given or known, each ``step`` further on."""

    def gather(table: Tensor, places: Tensor) -> Tensor:
        return te.compute((rows, 4), lambda i, j: table[te.cast(places[i], "int64") + i * step if step else places[i], j])

    builder = GraphBuilder()
    table = builder.constant(np.ones((50, 4), np.float32))
    places = builder.input("ids", Value((rows,), "int64")) if where is None else builder.constant(where)
    return builder.finish({"y": builder.apply(gather, table, places)})


def test_places_that_data_name_are_there_in_what_is_only_filled_up() -> None:
    assert is_restriction(_looked_up(3, 0), _looked_up(8, 0))
    assert not is_restriction(_looked_up(3, 1), _looked_up(8, 1))
    known = np.arange(8)
    assert not is_restriction(_looked_up(3, 0, known[:3]), _looked_up(8, 0, known))
