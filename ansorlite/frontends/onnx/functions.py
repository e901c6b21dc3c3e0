"""A model's own functions, put in the place of their calls; how much that gives is counted first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

import onnx
import onnx.inliner
from onnx import FunctionProto, NodeProto
from onnx.checker import ValidationError

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.outline import outline

#: Nodes, and bytes of them, that a model may have with its functions in their places: a function that calls another one twice,
#: which calls another one twice, makes a million of twenty lines.
_MOST_NODES: Final = 1 << 16
_MOST_BYTES: Final = 1 << 28

#: Functions that may call one another in a row.
_DEEPEST: Final = 100

#: Domain, name and overload.
_Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class _Cost:
    """What something takes once it has no calls any more."""

    nodes: int
    nbytes: int
    depth: int


def check_functions(model: onnx.ModelProto, what: str) -> None:
    """
    Raises:
        ModelError: some call themselves, or would become too much in the places of their calls.
    """
    functions = {_key(function): function for function in model.functions}
    calls = {key: {_callee(node) for node in _within(function.node)} & functions.keys() for key, function in functions.items()}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        round_trip = " calls ".join(repr(key[1]) for key in error.args[1][::-1])
        raise ModelError(f"{what} has a function that calls itself: {round_trip}") from None
    costs: dict[_Key, _Cost] = {}
    for key in order:
        costs[key] = _cost(functions[key].node, costs)
    whole = _cost(model.graph.node, costs)
    if whole.nodes > _MOST_NODES or whole.nbytes > _MOST_BYTES:
        raise ModelError(
            f"{what} has functions that call one another so often that it stands for {whole.nodes} nodes of {whole.nbytes} "
            f"bytes; the most is {_MOST_NODES} nodes and {_MOST_BYTES >> 20} MiB"
        )
    if whole.depth > _DEEPEST:
        raise ModelError(f"{what} has functions that call one another {whole.depth} deep; the most is {_DEEPEST}")


def inlined(model: onnx.ModelProto, what: str) -> onnx.ModelProto:
    """``model``, whose functions are checked, without functions of its own.

    Raises:
        ModelError: they do not fit their calls.
    """
    try:
        result = onnx.inliner.inline_local_functions(outline(model))
    except (RuntimeError, ValueError, ValidationError) as error:
        raise ModelError(f"{what}: its functions cannot be expanded: {error}") from None
    # The inliner serialises what it is given; weights need not go through that.
    for field in ("initializer", "input", "output"):
        result.graph.ClearField(field)
        getattr(result.graph, field).extend(getattr(model.graph, field))
    return result


def _cost(nodes: Iterable[NodeProto], costs: Mapping[_Key, _Cost]) -> _Cost:
    count = nbytes = depth = 0
    for node in nodes:
        nbytes += node.ByteSize()
        for inner in _within([node]):
            called = costs.get(_callee(inner))
            count += 1 if called is None else called.nodes
            if called is not None:
                nbytes += called.nbytes
                depth = max(depth, called.depth + 1)
    return _Cost(count, nbytes, depth)


def _within(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _within(graph.node)


def _key(function: FunctionProto) -> _Key:
    return function.domain, function.name, function.overload


def _callee(node: NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload
