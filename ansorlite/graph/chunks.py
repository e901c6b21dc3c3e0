"""Chains with a large value in their midst run chunk by chunk, so that this value never leaves the second cache.

Attention is such a chain: the scores of all heads and positions are larger than what goes in and what comes out. Heads, and
rows of one head, do not depend on one another, so that a chunk of scores can be computed, normalised and used up before the next.
Nothing here knows attention: chains are found by which places depend on which, and by bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from ansorlite.graph.dependence import dimensions_in_step, reuses_data
from ansorlite.graph.describe import Pattern, Value
from ansorlite.graph.fusion import FusionGroup
from ansorlite.graph.graph import Graph, Node
from ansorlite.graph.movement import is_movement
from ansorlite.graph.restriction import is_restriction
from ansorlite.target import Target
from ansorlite.topi.shape import concat, strided_slice

#: Each thread works on a chunk of the large value that takes this part of its second cache: what is read beside it, and the
#: next value of its size, need room too.
_SHARE: Final = 4
#: A dimension that some factor is the same along is cut into no fewer elements: rows of a register tile, and some.
_LEAST: Final = 16
#: Every chunk is a few calls, and code for them.
_MOST_CHUNKS: Final = 256


@dataclass(frozen=True, eq=False)
class _Chain:
    """Nodes in a row, each the only reader of the one before, from a product that makes a large value to one that uses it up.

    Attributes:
        large: bytes of the large value.
        stores: how many values of that size are stored between kernels.
        along: for each leading dimension of the result that the whole chain walks in step, value → its dimension.
    """

    nodes: tuple[Node, ...]
    large: int
    stores: int
    along: tuple[Mapping[str, int], ...]

    @property
    def result(self) -> str:
        return self.nodes[-1].output

    @property
    def inputs(self) -> tuple[str, ...]:
        return FusionGroup.of(self.nodes).inputs


def run_in_chunks(graph: Graph, target: Target) -> Graph:
    """A large value between two products is made and used up part by part, if less is read again than is not stored.

    Slices of leading dimensions and their concatenation are views, so what is left is calls of smaller kernels, in turns.

    >>> before: s = q @ k; p = softmax(s); y = p @ v
    >>> after:  s1 = q[0] @ k[0]; p1 = softmax(s1); y1 = p1 @ v[0]; s2 = q[1] @ k[1]; ...; y = concat(y1, y2, ...)
    """
    for node in graph.nodes:
        chain = _chain(graph, node) if graph.producers.get(node.output) is node else None
        parts = None if chain is None else _parts(graph, chain, target)
        if chain is not None and parts is not None:
            graph = _cut(graph, chain, parts)
    return graph


def _chain(graph: Graph, first: Node) -> _Chain | None:
    """The chain that begins with ``first``, if there is one."""
    large = graph.values[first.output].nbytes
    if not _expands(graph, first) or not reuses_data(*graph.use(first)):
        return None
    nodes, stores = [first], 0
    while graph.values[nodes[-1].output].nbytes == large:
        following = graph.only_consumer(nodes[-1].output)
        if following is None:
            return None
        stores += graph.descriptions[following.output].pattern is not Pattern.ELEMENTWISE
        nodes.append(following)
    last = nodes[-1]
    if graph.values[last.output].nbytes > large or not reuses_data(*graph.use(last)):
        return None
    along: list[Mapping[str, int]] = []
    for dimension in range(len(graph.values[last.output].shape)):
        found = _in_step(graph, nodes, dimension)
        if found is None or first.output not in found:
            break
        along.append(found)
    return _Chain(tuple(nodes), large, stores, tuple(along)) if along else None


def _expands(graph: Graph, node: Node) -> bool:
    """Whether the result is larger than each of the inputs."""
    return all(graph.values[name].nbytes < graph.values[node.output].nbytes for name in node.inputs)


def _in_step(graph: Graph, nodes: Sequence[Node], dimension: int) -> dict[str, int] | None:
    """Value that the chain reads or computes → its dimension that goes with ``dimension`` of the result, if it has one."""
    found: dict[str, int | None] = {nodes[-1].output: dimension}
    inside = {node.output for node in nodes}
    for node in reversed(nodes):
        own = found[node.output]
        places = None if own is None else dimensions_in_step(*graph.use(node), own)
        if places is None or any(found.setdefault(name, place) != place for name, place in zip(node.inputs, places, strict=True)):
            return None
    if any(found[name] is None for name in inside):
        return None
    return {name: place for name, place in found.items() if place is not None}


def _parts(graph: Graph, chain: _Chain, target: Target) -> tuple[int, ...] | None:
    """How many elements of each leading dimension a chunk has; ``None`` if one chunk is best."""
    most = max(target.l2 // _SHARE * target.threads, chain.large // _MOST_CHUNKS)
    shape = graph.values[chain.result].shape
    needed = -(-chain.large // most)
    parts: list[int] = []
    for along, extent in zip(chain.along, shape, strict=False):
        if needed <= 1 or any(part > 1 for part in parts):
            break
        least = 1 if _is_batch(chain, along) else _LEAST
        part = max((size for size in range(least, extent // min(needed, extent) + 1) if extent % size == 0), default=extent)
        parts.append(part)
        needed = -(-needed * part // extent)
    counts = [extent // part for extent, part in zip(shape, parts, strict=False)]
    again = 0
    for name in chain.inputs:
        own = math.prod(count for count, along in zip(counts, chain.along, strict=False) if name in along)
        again += (math.prod(counts) // own - 1) * graph.values[name].nbytes
    return tuple(parts) if math.prod(counts) > 1 and again < 2 * chain.stores * chain.large else None


def _is_batch(chain: _Chain, along: Mapping[str, int]) -> bool:
    """Whether all factors of both products move along the dimension, so that they reuse nothing along it."""
    return all(name in along for node in (chain.nodes[0], chain.nodes[-1]) for name in node.inputs)


def _cut(graph: Graph, chain: _Chain, parts: tuple[int, ...]) -> Graph:
    """``graph`` with the chain in chunks of ``parts``; as it is, if that would move bytes, or prove to be something else."""
    if any(name in along and name in graph.constants for name in chain.inputs for along in chain.along[: len(parts)]):
        return graph
    cutter = _Cutter(graph, chain, parts)
    nodes = list(cutter.nodes())
    inside = {node.output for node in chain.nodes}
    end = graph.nodes.index(chain.nodes[-1])
    before, after = ([node for node in part if node.output not in inside] for part in (graph.nodes[:end], graph.nodes[end:]))
    cut = graph.replaced([*before, *nodes, *after])
    views = [node for node in nodes if node.operator in (strided_slice, concat)]
    return cut if all(is_movement(cut, node) for node in views) and cutter.is_sound() else graph


class _Cutter:
    """A chain, chunk by chunk."""

    def __init__(self, graph: Graph, chain: _Chain, parts: tuple[int, ...]) -> None:
        self.graph = graph
        self.chain = chain
        self.parts = parts
        self.counts = tuple(e // p for e, p in zip(graph.values[chain.result].shape, parts, strict=False))
        self.sliced: dict[tuple[str, tuple[int, ...]], str] = {}

    def nodes(self) -> Iterator[Node]:
        """Those of every chunk in turns, then the concatenations, innermost dimension first."""
        results: dict[tuple[int, ...], str] = {}
        for chunk in product(*(range(count) for count in self.counts)):
            names: dict[str, str] = {}
            for name in self.chain.inputs:
                starts = self._starts(name, chunk)
                if (name, starts) not in self.sliced:
                    node = self._slice(name, starts)
                    self.sliced[name, starts] = node.output if node is not None else name
                    if node is not None:
                        yield node
                names[name] = self.sliced[name, starts]
            for node in self.chain.nodes:
                names[node.output] = self.graph.fresh(f"{node.output}{list(chunk)}")
                yield replace(node, output=names[node.output], inputs=tuple(names[name] for name in node.inputs))
            results[chunk] = names[self.chain.result]
        for dimension in reversed(range(len(self.counts))):
            joined: dict[tuple[int, ...], str] = {}
            for lead in product(*(range(count) for count in self.counts[:dimension])):
                pieces = tuple(results[*lead, n] for n in range(self.counts[dimension]))
                whole = dimension == 0
                joined[lead] = self.chain.result if whole else self.graph.fresh(f"{self.chain.result}{list(lead)}whole")
                if len(pieces) == 1 and not whole:
                    joined[lead] = pieces[0]
                    continue
                yield Node(joined[lead], concat, pieces, (("axis", dimension),))
            results = joined

    def is_sound(self) -> bool:
        """Whether the chain's operators, on a chunk's shapes, compute the first chunk of what they compute on the whole."""
        small = {name: Value(self._shape(name), self.graph.values[name].dtype) for name in self.chain.inputs}
        large = {name: self.graph.values[name] for name in self.chain.inputs}
        outputs = {self.chain.result: self.chain.result}
        return is_restriction(Graph.of(small, outputs, self.chain.nodes, {}), Graph.of(large, outputs, self.chain.nodes, {}))

    def _slice(self, name: str, starts: tuple[int, ...]) -> Node | None:
        """The part of an input that one chunk reads, if that is not all of it."""
        counts = self._shape(name)
        if counts == self.graph.values[name].shape:
            return None
        attributes = (("starts", starts), ("counts", counts), ("steps", (1,) * len(counts)))
        return Node(self.graph.fresh(f"{name}{list(starts)}"), strided_slice, (name,), attributes)

    def _shape(self, name: str) -> tuple[int, ...]:
        shape = list(self.graph.values[name].shape)
        for part, along in zip(self.parts, self.chain.along, strict=False):
            if name in along:
                shape[along[name]] = part
        return tuple(shape)

    def _starts(self, name: str, chunk: tuple[int, ...]) -> tuple[int, ...]:
        starts = [0] * len(self.graph.values[name].shape)
        for place, part, along in zip(chunk, self.parts, self.chain.along, strict=False):
            if name in along:
                starts[along[name]] = place * part
        return tuple(starts)
