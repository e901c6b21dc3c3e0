"""Inputs of a size below their bound are read where they are, if it is rows that lie apart: nothing is filled up for them.

A cache of keys that holds 905 of at most 1,023 places is 8 heads of 905 rows, each of 64 numbers in a row. A program for the
bound takes it as rows, with how many there are of each dimension before, and how many lie between two of them; so a part of a
larger array is read in place, too, as what this program itself gave the call before.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ansorlite import te
from ansorlite.graph.dag_operator import DagOperator
from ansorlite.graph.describe import Pattern, Value
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Const, Expr
from ansorlite.te.rewriting import inline, with_unique_names
from ansorlite.te.tensor import Tensor

#: Bytes of a row from which on reading it in place is worth while: a line of a cache.
_LEAST_ROW: Final = 64


@dataclass(frozen=True)
class RowInput:
    """An input that is read row by row.

    Attributes:
        name: of the input.
        layout: the input that says where rows are: the extents of its outer dimensions, then rows between neighbours along each.
        shape: the extents of the array that it stands for, at most.
        grown: for each outer dimension, those that count rows, whether there may be less of it. The others are a row.
    """

    name: str
    layout: str
    shape: tuple[int, ...]
    grown: tuple[bool, ...]

    @property
    def outer(self) -> int:
        return len(self.grown)

    @property
    def layout_value(self) -> Value:
        return Value((2 * self.outer,), dtypes.INDEX)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The shape of its memory, from its first row to its last at most: there is some room between rows."""
        outer = zip(self.shape, self.grown, strict=False)
        most = math.prod(extent + extent // 4 + 1 if grown else extent for extent, grown in outer)
        return (most, *self.shape[self.outer :])

    @cached_property
    def _within_rows(self) -> tuple[int, ...]:
        """Elements between neighbours of a row and of its parts, and elements of a row."""
        extents = reversed(self.shape[self.outer :])
        return tuple(reversed(list(accumulate(extents, operator.mul, initial=1))))

    def given(self, array: Array) -> tuple[Array, Array]:
        """What the program takes for ``array``: its memory as rows, and where they are. The program reads no others."""
        extents, strides = array.shape[: self.outer], array.strides[: self.outer]
        length, *expected = (elements * array.itemsize for elements in self._within_rows)
        reach = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
        # Strides along a single element say nothing.
        in_rows = all(
            stride == due or extent == 1
            for stride, due, extent in zip(array.strides[self.outer :], expected, array.shape[self.outer :], strict=True)
        )
        apart = all(stride >= 0 and not stride % length for stride in strides)
        if not (in_rows and apart and array.flags.aligned and reach < self.rows[0] * length):
            array = np.array(array, order="C")
            strides = array.strides[: self.outer]
        rows = as_strided(array, self.rows, (length, *expected))
        return rows, np.array([*extents, *(stride // length for stride in strides)], np.int64)


def row_inputs(graph: Graph, smaller: Mapping[str, tuple[int, ...]]) -> tuple[RowInput, ...]:
    """Those inputs that may have less than their extents, and have long rows.

    Args:
        smaller: input → a shape of it below the bound: where it has less, others may, too.
    """
    found = (_row_input(graph, name, value, smaller.get(name)) for name, value in graph.inputs.items())
    return tuple(row for row in found if row is not None)


def reading_in_place(graph: Graph, rows: Sequence[RowInput]) -> Graph:
    """``graph``, which is given these inputs row by row."""
    if not rows:
        return graph
    found = {row.name: row for row in rows}
    inputs = dict(graph.inputs)
    for row in found.values():
        inputs |= {row.name: Value(row.rows, inputs[row.name].dtype), row.layout: row.layout_value}
    whole = {name: graph.fresh(f"{name} in place") for name in found}
    nodes = []
    for node in graph.nodes:
        # What moves elements, or computes them one by one, reads them where they are; others read a copy.
        folds = graph.descriptions[node.output].pattern is Pattern.REDUCTION
        nodes.append(node.reading(whole) if folds else _directly(graph, node, found))
    outputs = {public: whole.get(name, name) for public, name in graph.outputs.items()}
    read = {*outputs.values(), *(name for node in nodes for name in node.inputs)}
    copies = [
        Node(whole[row.name], by_rows, (row.name, row.layout), (("shape", row.shape), ("grown", row.grown)))
        for row in found.values()
        if whole[row.name] in read
    ]
    return Graph.of(inputs, outputs, [*copies, *nodes], graph.constants)


def by_rows(rows: Tensor, layout: Tensor, *, shape: tuple[int, ...], grown: tuple[bool, ...]) -> Tensor:
    """An array of ``shape`` whose rows lie where ``layout`` says; what is beyond its own extents repeats the last one.

    Args:
        rows: (rows, ...): all of its memory.
        layout: the outer dimensions' extents, then rows between neighbours along each.
        grown: for each outer dimension, whether there may be less of it than ``shape`` says.
    """
    outer = len(grown)

    def element(*axes: Expr) -> Expr:
        place: Expr = Const(0, dtypes.INDEX)
        for dimension, axis in enumerate(axes[:outer]):
            if shape[dimension] > 1:
                within = te.minimum(axis, layout[dimension] - 1) if grown[dimension] else axis
                place = place + within * layout[outer + dimension]
        return rows[(place, *axes[outer:])]

    return te.compute(shape, element, name="by_rows")


def _directly(graph: Graph, node: Node, found: Mapping[str, RowInput]) -> Node:
    """``node``, which reads what it reads of ``found`` in place."""
    taken = {name: found[name] for name in node.inputs if name in found}
    if not taken:
        return node
    values = {name: graph.values[name] for name in node.inputs}
    values |= {name: Value(row.rows, values[name].dtype) for name, row in taken.items()}
    values |= {row.layout: row.layout_value for row in taken.values()}
    given = {name: te.placeholder(value.shape, value.dtype, name) for name, value in values.items()}
    whole = {name: by_rows(given[name], given[row.layout], shape=row.shape, grown=row.grown) for name, row in taken.items()}
    result = node.operator(*(whole.get(name, given[name]) for name in node.inputs), **dict(node.attributes))
    written = ComputeDAG.of([*given.values(), result])
    dag = with_unique_names(written)
    for tensor, named in zip(written.tensors, dag.tensors, strict=True):
        if tensor in whole.values():
            dag = inline(dag, named.name)
    return Node(node.output, DagOperator.of(dag.inputs, dag.outputs[0]), tuple(given), (), node.label)


def _row_input(graph: Graph, name: str, value: Value, smaller: tuple[int, ...] | None) -> RowInput | None:
    """How an input is read row by row, if that is worth while."""
    grown = [few != many for few, many in zip(smaller or value.shape, value.shape, strict=True)]
    outer = max((place + 1 for place, less in enumerate(grown) if less), default=0)
    if not outer or math.prod(value.shape[outer:]) * dtypes.size(value.dtype) < _LEAST_ROW:
        return None
    return RowInput(name, graph.fresh(f"layout of {name}"), value.shape, tuple(grown[:outer]))
