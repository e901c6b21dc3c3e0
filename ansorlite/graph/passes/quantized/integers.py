"""Products and sums of dequantised values are computed on the integers themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.graph.passes.quantized.scaling import Scaling, scaling_of, spread
from ansorlite.te import dtypes
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import add
from ansorlite.topi.matmul import gemm, matmul
from ansorlite.topi.pooling import average_pool, global_average_pool
from ansorlite.topi.quantized import dequantize, integer_conv, integer_matmul, integer_sum, integer_window_sum
from ansorlite.topi.reduction import normalized_axes, reduce_mean
from ansorlite.topi.shape import reshape, transpose

#: Sums of this magnitude and more do not fit into int32.
_LIMIT: Final = 1 << 31


def compute_on_integers(graph: Graph) -> Graph:
    """Convolutions, matrix products and means of dequantised bytes become sums of integers, which are dequantised after them.

    In real arithmetic nothing changes: ``sum (a - za) sa (b - zb) sb`` is ``sa sb sum (a - za)(b - zb)``. In a computer's, the
    sum is now exact, where float32 rounded each of its terms; nodes whose sums might leave int32 stay as they are. A bias
    of the product's own scale, as quantisers make it, is a summand; other biases are added to what is dequantised.

    >>> before: y = conv(dequantize(x, s, z), dequantize(w, t)) + dequantize(b, s * t)
    >>> after:  a = integer_conv(x, w, zero=z) + b; y = dequantize(a, s * t)
    >>> before: y = global_average_pool(dequantize(x, s, z))              # of n elements each
    >>> after:  a = integer_sum(x, zero=z); y = dequantize(a, s / n)
    """
    sweep = _Sweep(graph)
    for node in graph.nodes:
        sweep.place(node)
    return eliminate_dead_nodes(graph.replaced(sweep.nodes.values(), constants=sweep.constants))


class _Sweep:
    """One walk over a graph's nodes, producers first.

    Attributes:
        nodes: output → the node that computes it from now on.
        constants: those of the graph, and the new ones.
        most: a new sum → the largest magnitude that it can have.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: dict[str, Node] = {}
        self.constants: dict[str, Array] = dict(graph.constants)
        self.most: dict[str, int] = {}

    def place(self, node: Node) -> None:
        """Take ``node`` in, on integers if it can be."""
        convert = _CONVERTERS.get(node.operator)
        if convert is None or not convert(self, node):
            self.nodes[node.output] = node

    def convolution(self, node: Node) -> bool:
        x, w = map(self._bytes, node.inputs)
        if x is None or w is None or not x[1].uniform or not _along(w[1], 0):
            return False
        factor = _product(x[1], w[1])
        shape = self.graph.values[w[0]].shape
        most = math.prod(shape[1:]) * self._reach(*x) * self._reach(*w)
        if factor is None or most >= _LIMIT:
            return False
        inputs = (x[0], w[0], *self._zero(node, w[1].zero))
        self._emit(node, integer_conv, inputs, {**dict(node.attributes), "zero": x[1].offset}, factor, 1, most)
        return True

    def matrix_product(self, node: Node) -> bool:
        a, b = map(self._bytes, node.inputs)
        if a is None or b is None or not a[1].uniform:
            return False
        first, second = (len(self.graph.values[name].shape) for name in node.inputs)
        flipped = node.operator is gemm and node.attribute("transpose_b")
        turned = node.operator is gemm and node.attribute("transpose_a")
        if second < 2 or not _along(b[1], 0 if flipped else second - 1):
            return False
        factor = _product(a[1], b[1])
        depth = self.graph.values[node.inputs[0]].shape[0 if turned else first - 1]
        most = depth * self._reach(*a) * self._reach(*b)
        if factor is None or most >= _LIMIT:
            return False
        left = self._transposed(a[0], node) if turned else a[0]
        right = self._transposed(b[0], node) if flipped else b[0]
        zeros = self._zero(node, b[1].zero)
        if a[1].offset or zeros:
            dtype = dtypes.NUMPY[self.graph.values[a[0]].dtype]
            zeros = (*self._zero(node, np.asarray(a[1].offset, dtype)), *zeros)
        rank = len(self.graph.values[node.output].shape)
        self._emit(node, integer_matmul, (left, right, *zeros), {}, factor, rank - 1, most)
        return True

    def bias(self, node: Node) -> bool:
        for name, other in (node.inputs, node.inputs[::-1]):
            total, given = self.nodes.get(name), self._known(other)
            known = scaling_of(total, dequantize, self.constants)
            if total is None or known is None or given is None or total.inputs[0] not in self.most:
                continue
            values, scale = given
            shape = self.graph.values[node.output].shape
            if self.graph.values[name].shape != shape:
                continue
            wanted = spread(known.scale, known.axis, len(shape))
            most = self.most[total.inputs[0]] + int(np.abs(values.astype(np.int64)).max(initial=0))
            if most >= _LIMIT or not (np.broadcast_to(scale, np.broadcast_shapes(scale.shape, wanted.shape)) == wanted).all():
                continue
            summand = self._constant(node, "bias", values)
            self._emit(node, add, (total.inputs[0], summand), {}, known.scale, known.axis, most)
            return True
        return False

    def mean(self, node: Node) -> bool:
        x = self._bytes(node.inputs[0])
        if x is None or not x[1].uniform:
            return False
        shape = self.graph.values[node.inputs[0]].shape
        given: dict[str, Any] = {"axes": tuple(range(2, len(shape))), "keepdims": True}
        if node.operator is reduce_mean:
            given = {name: node.attribute(name) for name in given}
        count = math.prod(shape[axis] for axis in normalized_axes(given["axes"], len(shape)))
        return self._averaged(node, integer_sum, x, given, count)

    def window_mean(self, node: Node) -> bool:
        x = self._bytes(node.inputs[0])
        if x is None or not x[1].uniform or node.attribute("ceil_mode"):
            return False
        given = {name: value for name, value in node.attributes if name not in ("ceil_mode", "count_include_pad")}
        if any((*(given.get("before") or ()), *(given.get("after") or ()))) and not node.attribute("count_include_pad"):
            # The windows at the border have fewer elements.
            return False
        return self._averaged(node, integer_window_sum, x, given, math.prod(node.attribute("kernel")))

    def _averaged(self, node: Node, operator: Operator, x: tuple[str, Scaling], given: Mapping[str, Any], count: int) -> bool:
        most = count * self._reach(*x)
        if not 0 < most < _LIMIT:
            return False
        scale = np.asarray(x[1].scale / np.float32(count))
        self._emit(node, operator, (x[0],), {**given, "zero": x[1].offset}, scale, 0, most)
        return True

    def _bytes(self, name: str) -> tuple[str, Scaling] | None:
        """What ``name`` is dequantised from, if that is bytes."""
        node = self.nodes.get(name)
        scaling = scaling_of(node, dequantize, self.constants)
        if node is None or scaling is None or dtypes.size(self.graph.values[node.inputs[0]].dtype) > 1:
            return None
        return node.inputs[0], scaling

    def _reach(self, name: str, scaling: Scaling) -> int:
        """The largest magnitude of the integers ``name`` less their zero points."""
        if name in self.constants:
            zero = spread(scaling.zero, scaling.axis, self.constants[name].ndim) if scaling.zero is not None else np.int32(0)
            return int(np.abs(self.constants[name].astype(np.int32) - zero.astype(np.int32)).max(initial=0))
        info = np.iinfo(self.graph.values[name].dtype)
        zero = np.asarray(0 if scaling.zero is None else scaling.zero, np.int32)
        return int(max((zero - int(info.min)).max(), (int(info.max) - zero).max()))

    def _known(self, name: str) -> tuple[Array, Array] | None:
        """A constant in int32 without zero points, and its scale, broadcast to its rank; through a reshape too."""
        node, shape = self.nodes.get(name), self.graph.values[name].shape
        if node is not None and node.operator is reshape:
            node = self.nodes.get(node.inputs[0])
        scaling = scaling_of(node, dequantize, self.constants)
        if node is None or scaling is None or scaling.zero is not None or node.inputs[0] not in self.constants:
            return None
        values = self.constants[node.inputs[0]]
        if values.dtype != np.int32:
            return None
        scale = np.broadcast_to(spread(scaling.scale, scaling.axis, values.ndim), values.shape)
        return values.reshape(shape), scale.reshape(shape)

    def _zero(self, node: Node, zero: Array | None) -> tuple[str, ...]:
        return () if zero is None else (self._constant(node, "zero", zero),)

    def _transposed(self, name: str, node: Node) -> str:
        if name in self.constants:
            return self._constant(node, "transposed", np.ascontiguousarray(self.constants[name].T))
        target = self.graph.fresh(f"{node.output}.{name}.transposed")
        self.nodes[target] = Node(target, transpose, (name,), (("axes", (1, 0)),), node.label)
        return target

    def _constant(self, node: Node, what: str, array: Array) -> str:
        name = self.graph.fresh(f"{node.output}.{what}")
        while name in self.constants:
            name += "'"
        self.constants[name] = array
        return name

    def _emit(
        self,
        node: Node,
        operator: Operator,
        inputs: tuple[str, ...],
        given: Mapping[str, Any],
        scale: Array,
        axis: int,
        most: int,
    ) -> None:
        """``node`` as integers, and what dequantises them."""
        total = self.graph.fresh(f"{node.output}.total")
        self.most[total] = most
        self.nodes[total] = Node(total, operator, inputs, tuple(given.items()), node.label)
        scales = (total, self._constant(node, "scale", scale))
        self.nodes[node.output] = Node(node.output, dequantize, scales, (("axis", axis),), node.label)


def _along(scaling: Scaling, axis: int) -> bool:
    """Whether scales and zero points are one for all, or one for each position along ``axis``."""
    return scaling.uniform or scaling.axis == axis


def _product(one: Scaling, other: Scaling) -> Array | None:
    """The scale of a product; ``None`` if that is no normal number."""
    scale = np.asarray(one.scale * other.scale)
    return scale if (scale >= np.finfo(np.float32).tiny).all() and np.isfinite(scale).all() else None


_CONVERTERS: Final[Mapping[Operator, Callable[[_Sweep, Node], bool]]] = {
    conv: _Sweep.convolution,
    matmul: _Sweep.matrix_product,
    gemm: _Sweep.matrix_product,
    add: _Sweep.bias,
    reduce_mean: _Sweep.mean,
    global_average_pool: _Sweep.mean,
    average_pool: _Sweep.window_mean,
}
