"""Quantisation before what only moves values, or keeps their order, so that bytes are moved and not floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorlite.graph.graph import Array, Graph, Node
from ansorlite.graph.passes.choosing import CHOOSING, chosen_from
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.graph.passes.quantized.scaling import Scaling, scaling_of
from ansorlite.topi.activations import relu
from ansorlite.topi.elementwise import clip, maximum, minimum
from ansorlite.topi.quantized import dequantize, quantize


def quantize_early(graph: Graph) -> Graph:
    """Movements, maxima and limits that only a quantisation reads are of quantised values.

    Quantisation is monotonic and the same for all elements, so it commutes with them to the bit: the largest of quantised
    values is the quantised largest one, and limits are quantised limits (of a ReLU, the zero point). Where the input was
    dequantised by the same scale, nothing is left of either: the integers times the scale, by the scale, are rounded twice in
    float32, by far less than half a quantum.

    >>> before: y = quantize(max_pool(relu(x)), s, z)
    >>> after:  y = max_pool(maximum(quantize(x, s, z), z))
    >>> before: y = quantize(transpose(dequantize(x, s, z)), s, z)
    >>> after:  y = transpose(x)
    """
    sweep = _Sweep(graph)
    for node in graph.nodes:
        sweep.place(node)
    return eliminate_dead_nodes(graph.replaced(sweep.nodes, constants=sweep.constants, same=sweep.same))


class _Sweep:
    """One walk over a graph's nodes, producers first.

    Attributes:
        nodes: those of the result.
        constants: those of the graph, and the new ones.
        same: a value → the one that it equals and that takes its place.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self.same: dict[str, str] = {}

    def place(self, node: Node) -> None:
        scaling = scaling_of(node, quantize, self.constants)
        if scaling is not None and scaling.uniform:
            self.same[node.output] = self._quantized(node.inputs[0], node, scaling)
            return
        self.nodes.append(node.reading(self.same))

    def _quantized(self, name: str, node: Node, scaling: Scaling) -> str:
        """The value ``name``, quantised as by ``node``."""
        producer = self.graph.producers.get(name)
        dtype = self.graph.values[node.output].dtype
        known = scaling_of(producer, dequantize, self.constants)
        if producer is not None and known is not None and known.is_same(scaling):
            source = producer.inputs[0]
            if self.graph.values[source].dtype == dtype:
                return self.same.get(source, source)
        alone = producer is not None and self.graph.only_consumer(name) is not None
        if producer is not None and alone and producer.operator in CHOOSING:
            chosen = chosen_from(producer)
            parts = [self._quantized(part, node, scaling) for part in chosen]
            parts += (self.same.get(part, part) for part in producer.inputs[len(chosen) :])
            return self._new(name, Node("", producer.operator, tuple(parts), producer.attributes, producer.label))
        if producer is not None and alone and producer.operator in (relu, clip):
            limits = (0, None) if producer.operator is relu else (producer.attribute("low"), producer.attribute("high"))
            return self._limited(self._quantized(producer.inputs[0], node, scaling), limits, scaling, producer, dtype)
        source = self.same.get(name, name)
        return self._new(name, Node("", quantize, (source, *node.inputs[1:]), node.attributes, node.label))

    def _limited(self, name: str, limits: tuple[float | None, float | None], scaling: Scaling, producer: Node, dtype: str) -> str:
        """The integers ``name`` within quantised limits, but for those that ``dtype`` has itself."""
        info = np.iinfo(dtype)
        for operator, limit, bound in ((maximum, limits[0], info.min), (minimum, limits[1], info.max)):
            if limit is None:
                continue
            array = scaling.quantized(np.asarray(limit), dtype)
            if int(array) != bound:
                constant = self.graph.fresh(f"{producer.output}.{operator.__name__}.{len(self.nodes)}")
                self.constants[constant] = array
                name = self._new(producer.output, Node("", operator, (name, constant), label=producer.label))
        return name

    def _new(self, name: str, node: Node) -> str:
        """``node``, with a name of its own made from ``name``."""
        output = self.graph.fresh(f"{name}.quantized.{len(self.nodes)}")
        self.nodes.append(replace(node, output=output))
        return output
