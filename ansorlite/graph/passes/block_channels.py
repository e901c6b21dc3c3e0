"""Channels in blocks: convolutions, and what lies between them, compute on ``(n, c / block, spatial..., block)``.

A vector then holds neighbouring channels of one place, whatever the sizes of images, windows and strides are; in plain
layout it holds neighbouring places, and the channels that a sum goes over lie a whole image apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import networkx as nx
import numpy as np

from ansorlite.errors import ExpressionError
from ansorlite.graph.constants import is_splat, reshaped
from ansorlite.graph.describe import Operator, Pattern, Value, describe
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.block_sizes import block_sizes
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes, simplify_views
from ansorlite.topi.blocked import blocked_conv
from ansorlite.topi.conv import conv
from ansorlite.topi.norm import blocked_lrn, lrn
from ansorlite.topi.padding import pad
from ansorlite.topi.pooling import average_pool, global_average_pool, global_max_pool, lp_pool, max_pool
from ansorlite.topi.quantized import integer_conv, integer_sum, integer_window_sum
from ansorlite.topi.reduction import normalized_axes, reduce_max, reduce_mean, reduce_min, reduce_sum
from ansorlite.topi.shape import concat, reshape, transpose

#: Convolutions, and the dtypes of their results where blocks pay.
_CONVOLUTIONS: Final[dict[Operator, frozenset[str]]] = {
    conv: frozenset({"float32", "bfloat16", "float16"}),
    integer_conv: frozenset({"int32"}),
}
_NO_ROWS: Final[Mapping[str, int]] = {}
#: Operators of windows, which see the places of a block as one more spatial dimension, with these attributes along it.
_WINDOWS: Final[tuple[Operator, ...]] = (max_pool, average_pool, lp_pool, integer_window_sum)
_ALONG_BLOCK: Final = {"kernel": 1, "strides": 1, "before": 0, "after": 0, "dilations": 1}
_FOLDS: Final[tuple[Operator, ...]] = (reduce_mean, reduce_max, reduce_min, reduce_sum, integer_sum)
#: Folds of all spatial dimensions, by the fold that it is.
_GLOBAL: Final[dict[Operator, Operator]] = {global_average_pool: reduce_mean, global_max_pool: reduce_max}


def block_channels(graph: Graph, block: int, rows: Mapping[str, int] = _NO_ROWS) -> Graph:
    """Convolutions with constant weights, of floats and bytes, and what lies between them keep ``block`` channels side by side.

    Where all that is convolved are numbers that matrix units multiply, these are up to as many as a row of such a unit has.

    Values are put back in order where something else reads them; that must happen less often than convolutions gain by it:
    of values that depend on one another, all stay as they are unless there are more such convolutions than conversions.

    >>> before: a = conv(x, w); b = relu(a); c = max_pool(b); d = conv(c, v); y = gemm(reshape(d, (n, -1)), u)
    >>> after:  a = blocked_conv(x, w); b = relu(a); c = max_pool(b); d = blocked_conv(c, v);
    >>>         y = gemm(reshape(transpose(d), (n, -1)), u)

    Args:
        block: as many as a vector has float32.
        rows: how many numbers of a dtype a row of the matrix units has, for those that they multiply.
    """
    if block < 2:
        return graph
    convolutions = {node.output for node in graph.nodes if node.operator in _CONVOLUTIONS and node.inputs[1] in graph.constants}
    while True:
        sweep = _Sweep(graph, block_sizes(graph, convolutions, block, rows), convolutions, rows)
        unpaid = sweep.unpaid()
        if not unpaid:
            return eliminate_dead_nodes(simplify_views(graph.replaced(sweep.nodes, constants=sweep.constants)))
        convolutions -= unpaid


class _Sweep:
    """One walk over a graph's nodes, producers first.

    Attributes:
        blocks: channels of a block of each value.
        nodes: those of the result.
        constants: those of the graph, and the new ones.
        blocked: a value → the one that holds it in blocks, where there is one.
        plain: the values that are there as they were.
    """

    def __init__(self, graph: Graph, blocks: Mapping[str, int], convolutions: set[str], rows: Mapping[str, int]) -> None:
        self.graph = graph
        self.blocks = blocks
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self.blocked: dict[str, str] = {}
        self.plain: set[str] = {*graph.inputs, *graph.constants}
        self._convolutions = convolutions
        self._rows = rows
        self._regions = nx.Graph()
        self._conversions: list[str] = []
        for node in graph.nodes:
            self._place(node)
        for name in graph.outputs.values():
            self._as_plain(name)

    def unpaid(self) -> set[str]:
        """The convolutions whose region has no more of them than conversions."""
        found: set[str] = set()
        for region in nx.connected_components(self._regions):
            gaining = region & self._convolutions
            if len(gaining) <= sum(name in region for name in self._conversions):
                found |= gaining
        return found

    def _place(self, node: Node) -> None:
        replacement = self._in_blocks(node)
        if replacement is None:
            for name in node.inputs:
                self._as_plain(name)
            self.nodes.append(node)
            self.plain.add(node.output)
            return
        self.nodes.append(replacement)
        self.blocked[node.output] = replacement.output
        self._regions.add_node(node.output)
        self._regions.add_edges_from((name, node.output) for name in node.inputs if name in self.blocked)

    def _in_blocks(self, node: Node) -> Node | None:
        """``node`` with a result in blocks; ``None`` if it stays as it is."""
        shape = self.graph.values[node.output].shape
        block = self.blocks[node.output] if len(shape) > 1 else 0
        if not block or shape[1] % block:
            return None
        if node.operator in _CONVOLUTIONS:
            return self._convolution(node, block) if node.output in self._convolutions else None
        if not any(name in self.blocked for name in node.inputs):
            return None
        data = node.inputs[0]
        rank = len(self.graph.values[data].shape)
        if node.operator in _WINDOWS:
            given = dict(node.attributes)
            longer = {name: (*given[name], one) for name, one in _ALONG_BLOCK.items() if given.get(name) is not None}
            return self._node(node, node.operator, (self._as_blocked(data, block),), given | longer)
        if node.operator is pad:
            before, after = node.attribute("before"), node.attribute("after")
            if before[1] or after[1]:
                return None
            longer = {"before": (*before, 0), "after": (*after, 0)}
            return self._node(node, pad, (self._as_blocked(data, block),), dict(node.attributes) | longer)
        if node.operator in _GLOBAL:
            folded = {"axes": tuple(range(2, rank)), "keepdims": True}
            return self._node(node, _GLOBAL[node.operator], (self._as_blocked(data, block),), folded)
        if node.operator in _FOLDS:
            axes = normalized_axes(node.attribute("axes"), rank)
            if axes and axes[0] < 2:
                return None
            return self._node(node, node.operator, (self._as_blocked(data, block),), {**dict(node.attributes), "axes": axes})
        if node.operator is lrn:
            return self._node(node, blocked_lrn, (self._as_blocked(data, block),), dict(node.attributes))
        if node.operator is concat:
            along = normalized_axes([node.attribute("axis")], rank) == (1,)
            if not along or any(self.graph.values[name].shape[1] % block for name in node.inputs):
                return None
            return self._node(node, concat, tuple(self._as_blocked(name, block) for name in node.inputs), {"axis": 1})
        return self._pointwise(node, block)

    def _convolution(self, node: Node, block: int) -> Node | None:
        data, weight, *zeros = node.inputs
        channels, (outputs, depth) = self.graph.values[data].shape[1], self.graph.values[weight].shape[:2]
        groups = node.attribute("groups")
        if self.graph.values[node.output].dtype not in _CONVOLUTIONS[node.operator]:
            return None
        if any(math.prod(self.graph.values[zero].shape) > 1 for zero in zeros):
            # A zero point for each filter: its taps are no bytes, and no words of them are made.
            return None
        if groups > 1:
            if data not in self.blocked:
                return None
            depthwise = depth == 1 and channels == outputs
            whole = (outputs // groups) % block == 0 and depth % self.blocks[data] == 0
            if not (depthwise or whole):
                return None
        # Matrix units multiply channels that lie side by side; a vector takes one at a time, wherever it lies.
        inner = self.blocks.get(data, 0)
        side_by_side = inner > 0 and channels % inner == 0 and groups == 1 and self.graph.values[data].dtype in self._rows
        source = self._as_blocked(data, inner) if data in self.blocked or side_by_side else self._as_plain(data)
        operator = blocked_conv if node.operator is conv else node.operator
        return self._node(node, operator, (source, weight, *zeros), {**dict(node.attributes), "block": block})

    def _pointwise(self, node: Node, block: int) -> Node | None:
        """An operator that computes each element from those at the same place, wherever that is."""
        facts = self.graph.descriptions[node.output]
        shape = facts.value.shape
        if facts.pattern is not Pattern.ELEMENTWISE or facts.by_place:
            return None
        for name in node.inputs:
            own = self.graph.values[name].shape
            if len(own) == len(shape) or name in self.constants:
                continue
            # Fewer dimensions: the channels, if it has any, are not its second one.
            if name in self.blocked or (len(own) == len(shape) - 1 and own[0] != 1):
                return None
        operands = tuple(
            Value(self._operand_shape(name, len(shape), block), self.graph.values[name].dtype) for name in node.inputs
        )
        try:
            result = describe(node.operator, operands, node.attributes)
        except ExpressionError:
            # Attributes that speak of dimensions.
            return None
        if result.pattern is not Pattern.ELEMENTWISE or result.value.shape != _shape_in_blocks(shape, block):
            return None
        inputs = tuple(self._operand(name, len(shape), block) for name in node.inputs)
        return self._node(node, node.operator, inputs, dict(node.attributes))

    def _operand_shape(self, name: str, rank: int, block: int) -> tuple[int, ...]:
        """The shape of what :meth:`_operand` gives."""
        full = _expanded(self.graph.values[name].shape, rank)
        if math.prod(full) == 1:
            return self.graph.values[name].shape
        return _shape_in_blocks(full, block) if full[1] != 1 else (*full, 1)

    def _operand(self, name: str, rank: int, block: int) -> str:
        """A value that is broadcast to ``rank`` dimensions, for operands in blocks."""
        full = _expanded(self.graph.values[name].shape, rank)
        if math.prod(full) == 1:
            return self._as_plain(name)
        if full[1] != 1:
            return self._as_blocked(name, block, full)
        return self._reshaped(self._as_plain(name), (*full, 1))

    def _as_blocked(self, name: str, block: int, full: tuple[int, ...] | None = None) -> str:
        """The value in blocks, seen with the shape ``full``; converted now if it was not."""
        if name in self.blocked:
            return self.blocked[name]
        n, c, *rest = full or self.graph.values[name].shape
        parts = (n, c // block, block, *rest)
        order = (0, 1, *range(3, len(parts)), 2)
        if name in self.constants:
            array = np.transpose(reshaped(self.constants[name], parts), order)
            target = self.graph.fresh(f"{name}.blocked.{block}.{len(rest)}")
            self.constants[target] = array if is_splat(array) else np.ascontiguousarray(array)
            return target
        target = self.graph.fresh(f"{name}.blocked")
        if math.prod(rest) == 1:
            self.nodes.append(Node(target, reshape, (name,), (("shape", (n, c // block, *rest, block)),)))
        else:
            self.nodes.append(Node(target, transpose, (self._reshaped(name, parts),), (("axes", order),)))
            self._conversions.append(name)
        self.blocked[name] = target
        self._regions.add_node(name)
        return target

    def _as_plain(self, name: str) -> str:
        """The value as it was; put back in order now if it is in blocks only."""
        if name in self.plain:
            return name
        shape = self.graph.values[name].shape
        source = self.blocked[name]
        if math.prod(shape[2:]) > 1:
            self._conversions.append(name)
            order = (0, 1, len(shape), *range(2, len(shape)))
            moved = self.graph.fresh(f"{name}.unblocked")
            self.nodes.append(Node(moved, transpose, (source,), (("axes", order),)))
            source = moved
        self.nodes.append(Node(name, reshape, (source,), (("shape", shape),)))
        self.plain.add(name)
        return name

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        target = self.graph.fresh(f"{name}.{'x'.join(map(str, shape))}")
        if name in self.constants:
            self.constants[target] = reshaped(self.constants[name], shape)
        elif all(node.output != target for node in self.nodes):
            self.nodes.append(Node(target, reshape, (name,), (("shape", shape),)))
        return target

    def _node(self, node: Node, operator: Operator, inputs: tuple[str, ...], attributes: dict[str, Any]) -> Node:
        return Node(self.graph.fresh(f"{node.output}.blocked"), operator, inputs, tuple(attributes.items()), node.label)


def _shape_in_blocks(shape: tuple[int, ...], block: int) -> tuple[int, ...]:
    return (shape[0], shape[1] // block, *shape[2:], block)


def _expanded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """``shape`` with as many dimensions of 1 in front as ``rank`` asks for."""
    return (1,) * (rank - len(shape)) + shape
