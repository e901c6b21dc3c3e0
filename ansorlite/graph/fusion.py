"""Fusion: which nodes make one task together. What they read may join them, too: ``producers.py``."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ansorlite import te
from ansorlite.graph.describe import Pattern
from ansorlite.graph.graph import Graph, Node
from ansorlite.graph.movement import is_movement
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.tensor import Tensor
from ansorlite.topi.shape import reshape


@dataclass(frozen=True, eq=False)
class FusionGroup:
    """Nodes that are computed by one kernel, of whose results only the last is stored.

    Attributes:
        nodes: producers before consumers; the last one's output is the group's.
        inputs: the distinct values that it reads from outside, constants among them, in the order of first use.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]

    @staticmethod
    def of(nodes: Iterable[Node]) -> FusionGroup:
        """The group of ``nodes``, producers first."""
        members = tuple(nodes)
        inside = {node.output for node in members}
        return FusionGroup(members, tuple(dict.fromkeys(name for node in members for name in node.inputs if name not in inside)))

    @property
    def output(self) -> str:
        return self.nodes[-1].output

    @property
    def name(self) -> str:
        """The operators, for people: ``conv+add+relu``."""
        return "+".join(getattr(node.operator, "__name__", "operator") for node in self.nodes if node.operator is not reshape)


def fuse(graph: Graph) -> tuple[FusionGroup, ...]:
    """The groups of ``graph``, in an order in which they can run. Every node that moves no whole bytes is in one.

    A node joins the group whose output it reads if it is element-wise, reads that output at its own place, and is the
    only one to read it. Where it could join several (a residual sum), it joins the one that is computed last.

    >>> before: a = conv(x, w); b = a + bias; c = b + y; d = relu(c)
    >>> after:  d = [conv, add, add, relu](x, w, bias, y)
    """
    members: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if is_movement(graph, node):
            continue
        joined = [name for name in node.inputs if name in members and _may_join(graph, node, name)]
        tail = max(joined, key=list(members).index) if joined else None
        # Deleted and added anew, so that the dict stays in the order in which the groups end.
        members[node.output] = [*(members.pop(tail) if tail else ()), node]
    return tuple(FusionGroup.of(part) for nodes in members.values() for part in _narrowed(graph, nodes))


def _narrowed(graph: Graph, nodes: list[Node]) -> tuple[list[Node], ...]:
    """``nodes``, cut before a last one that makes its result larger than what it reads, if an element-wise one reads that.

    So that bytes are stored and not the floats that they stand for; it can join its reader.
    """
    last = nodes[-1]
    reader = graph.only_consumer(last.output)
    source = last.inputs[0]
    if reader is None or len(nodes) == 1 or source != nodes[-2].output:
        return (nodes,)
    aligned = graph.descriptions[reader.output].aligned[reader.inputs.index(last.output)]
    widens = graph.values[source].nbytes < graph.values[last.output].nbytes
    return (nodes[:-1], nodes[-1:]) if aligned and widens else (nodes,)


def _may_join(graph: Graph, node: Node, tail: str) -> bool:
    facts = graph.descriptions[node.output]
    if facts.pattern is not Pattern.ELEMENTWISE or graph.only_consumer(tail) is not node:
        return False
    return all(aligned for aligned, name in zip(facts.aligned, node.inputs, strict=True) if name == tail)


def task_of(graph: Graph, group: FusionGroup, target: Target) -> Task:
    """The tensor expression of ``group``, with its inputs and then its output as arguments; constants are constant inputs."""
    tensors = tensors_of(graph, group)
    return Task([*(tensors[name] for name in group.inputs), tensors[group.output]], target)


def use_of(graph: Graph, group: FusionGroup) -> Hashable:
    """All that the task of ``group`` depends on."""
    place = {name: number for number, name in enumerate((*group.inputs, *(node.output for node in group.nodes)))}
    inputs = tuple((graph.values[name], name in graph.constants) for name in group.inputs)
    return inputs, tuple((node.operator, node.attributes, tuple(place[name] for name in node.inputs)) for node in group.nodes)


def tensors_of(graph: Graph, group: FusionGroup) -> dict[str, Tensor]:
    """The values that ``group`` reads and computes, as tensors."""
    tensors: dict[str, Tensor] = {}
    names: set[str] = set()
    for node in group.nodes:
        for parameter, name in zip(_parameters(node), node.inputs, strict=True):
            if name not in tensors:
                value = graph.values[name]
                constant = name in graph.constants
                tensors[name] = te.placeholder(value.shape, value.dtype, _unique(parameter, names), constant=constant)
        tensors[node.output] = node.operator(*(tensors[name] for name in node.inputs), **dict(node.attributes))
    return tensors


def _parameters(node: Node) -> list[str]:
    """What the operator calls its inputs."""
    names = [p.name for p in inspect.signature(node.operator).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return names[: len(node.inputs)] if len(names) >= len(node.inputs) else [f"x{n}" for n in range(len(node.inputs))]


def _unique(name: str, taken: set[str]) -> str:
    result, number = name, 2
    while result in taken:
        result, number = f"{name}{number}", number + 1
    taken.add(result)
    return result
