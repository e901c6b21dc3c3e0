"""Assignments to slices, as PyTorch's exporter writes them: each along a first dimension, between transposes."""

from __future__ import annotations

from dataclasses import replace

from ansorlite.graph.graph import Graph, Node
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.topi.indexing import Scatter, slice_scatter
from ansorlite.topi.shape import strided_slice, transpose


def simplify_assigned_slices(graph: Graph) -> Graph:
    """Transposes of transposes are one; slices are assigned to before a transpose, not after it, and once.

    >>> before: y = transpose(slice_scatter(transpose(x, (1, 0)), transpose(u, (1, 0)), axis=0, start=1), (1, 0))
    >>> after:  y = slice_scatter(x, u, axis=1, start=1)
    >>> before: y = slice_scatter(x, u, axis=0, start=1); z = slice_scatter(y, y[1:], axis=0, start=1); return z
    >>> after:  y = slice_scatter(x, u, axis=0, start=1); return y
    """
    sweep = _Sweep(graph)
    for node in graph.nodes:
        sweep.place(node.reading(sweep.same))
    return eliminate_dead_nodes(graph.replaced(sweep.made.values(), same=sweep.same))


class _Sweep:
    """One walk over a graph's nodes, producers first.

    Attributes:
        made: those of the result, by what they compute.
        shapes: of all values, the new ones among them.
        same: a value → the one that it equals and that takes its place.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made: dict[str, Node] = {}
        self.shapes = {name: value.shape for name, value in graph.values.items()}
        self.same: dict[str, str] = {}

    def place(self, node: Node) -> None:
        equal: str | None = None
        if node.operator is transpose:
            node, equal = self._transposed(node)
        elif node.operator is slice_scatter:
            node, equal = self._assigned(node)
        elif node.operator is strided_slice:
            equal = self._assigned_before(node)
        if equal is not None:
            self.same[node.output] = equal
        else:
            self.made[node.output] = node

    def _transposed(self, node: Node) -> tuple[Node, str | None]:
        """A transpose of what no transpose made; or the value that it is, where it moves nothing."""
        axes, producer = tuple(node.attribute("axes")), self.made.get(node.inputs[0])
        if producer is not None and producer.operator is transpose:
            axes = tuple(producer.attribute("axes")[axis] for axis in axes)
            node = replace(node, inputs=producer.inputs, attributes=(("axes", axes),))
        return node, node.inputs[0] if axes == tuple(range(len(axes))) else None

    def _assigned(self, node: Node) -> tuple[Node, str | None]:
        """The assignment before the transpose of both of its operands; or the value that it is, where it changes nothing."""
        whole, part = (self.made.get(name) for name in node.inputs)
        if part is not None and part.operator is strided_slice and part.inputs == node.inputs[:1] and self._meet(part, node):
            return node, node.inputs[0]
        if whole is not None and whole.operator is slice_scatter and self._same_slice(whole, node):
            if whole.inputs[1] == node.inputs[1]:
                return node, node.inputs[0]
            return replace(node, inputs=(whole.inputs[0], node.inputs[1])), None
        if whole is None or part is None or whole.operator is not transpose or part.operator is not transpose:
            return node, None
        axes = tuple(whole.attribute("axes"))
        if axes != tuple(part.attribute("axes")):
            return node, None
        attributes = {**dict(node.attributes), "axis": axes[node.attribute("axis")]}
        name = self.graph.fresh(f"{node.output}.{len(self.made)}")
        self.shapes[name] = self.shapes[whole.inputs[0]]
        self.place(replace(node, output=name, inputs=(*whole.inputs, *part.inputs), attributes=tuple(attributes.items())))
        return self._transposed(Node(node.output, transpose, (self.same.get(name, name),), (("axes", axes),), node.label))

    def _assigned_before(self, node: Node) -> str | None:
        """The value that was assigned to just that slice."""
        producer = self.made.get(node.inputs[0])
        if producer is None or producer.operator is not slice_scatter or not self._meet(node, producer):
            return None
        return producer.inputs[1] if self.shapes[producer.inputs[1]] == self.shapes[node.output] else None

    def _same_slice(self, first: Node, second: Node) -> bool:
        """Whether nothing is left of what the first one assigned."""
        where = [tuple(node.attribute(name) for name in ("axis", "start", "step", "mode")) for node in (first, second)]
        shapes = [self.shapes[node.inputs[1]] for node in (first, second)]
        return where[0] == where[1] and where[0][-1] is Scatter.REPLACE and shapes[0] == shapes[1]

    def _meet(self, taken: Node, assigned: Node) -> bool:
        """Whether a slice begins and steps where an assignment does, and that one replaces."""
        axis = assigned.attribute("axis")
        starts, steps = (tuple(taken.attribute(name)) for name in ("starts", "steps"))
        wanted = [(assigned.attribute("start"), assigned.attribute("step")) if d == axis else (0, 1) for d in range(len(starts))]
        return assigned.attribute("mode") is Scatter.REPLACE and list(zip(starts, steps, strict=True)) == wanted
