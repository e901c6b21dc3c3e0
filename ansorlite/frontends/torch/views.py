"""Results of a graph that lie in memory of its arguments, or of each other: which are computed, and how the others are made."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ansorlite.frontends.torch.errors import NotCompiledError


@dataclass(frozen=True)
class View:
    """A result that is a part of another one, in other dimensions perhaps.

    Attributes:
        of: the position of the other result, whose elements lie side by side.
        shape, strides: in elements.
        offset: of its first element from the first one of the other, in elements.
    """

    of: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def taken(self, results: Sequence[Any]) -> torch.Tensor:
        """It, of results of another call."""
        whole: torch.Tensor = results[self.of]
        return whole.as_strided(self.shape, self.strides, whole.storage_offset() + self.offset)


@dataclass(frozen=True)
class Results:
    """
    Attributes:
        values: what the graph returned.
        computed: positions of the tensors that are its own, and share no element.
        views: of these, by position.
        of_arguments: positions of tensors that are in memory of an argument.
    """

    values: Sequence[Any]
    computed: tuple[int, ...]
    views: dict[int, View]
    of_arguments: tuple[int, ...]


def sorted_out(arguments: Sequence[Any], values: Sequence[Any]) -> Results:
    """What a graph returned, told apart by where it lies.

    Raises:
        NotCompiledError: two results overlap, and neither is a part of the other.
    """
    given = {_place(argument) for argument in arguments if isinstance(argument, torch.Tensor)}
    tensors = [position for position, value in enumerate(values) if isinstance(value, torch.Tensor)]
    of_arguments = tuple(p for p in tensors if values[p].numel() and _place(values[p]) in given)
    computed: list[int] = []
    views: dict[int, View] = {}
    # Larger ones first: a view has no more elements than what it is a view of.
    for position in sorted(set(tensors) - set(of_arguments), key=lambda position: -values[position].numel()):
        mine = values[position]
        beside = [other for other in computed if mine.numel() and _place(values[other]) == _place(mine)]
        whole = next((other for other in beside if _contains(values[other], mine)), None)
        if whole is not None:
            offset = mine.storage_offset() - values[whole].storage_offset()
            views[position] = View(whole, tuple(mine.shape), tuple(mine.stride()), offset)
        elif any(_overlap(values[other], mine) for other in beside):
            raise NotCompiledError("it returns tensors that overlap")
        else:
            computed.append(position)
    return Results(values, tuple(sorted(computed)), views, of_arguments)


def graph_of(graph: torch.fx.GraphModule, positions: Sequence[int]) -> torch.fx.GraphModule:
    """What of ``graph``, which stays as it is, makes the results at ``positions``."""
    nodes = copy.deepcopy(graph.graph)
    output = nodes.output_node()
    (results,) = output.args
    assert isinstance(results, tuple | list)
    output.args = (tuple(results[position] for position in positions),)
    nodes.eliminate_dead_code()
    return torch.fx.GraphModule(graph, nodes)


def along_memory(tensor: torch.Tensor) -> list[int] | None:
    """Its dimensions in the order in which they lie in memory, outermost first; ``None`` if elements do not lie side by side."""
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    return order if tensor.permute(order).is_contiguous() else None


def _place(tensor: torch.Tensor) -> int:
    address: int = tensor.untyped_storage().data_ptr()
    return address


def _contains(whole: torch.Tensor, part: torch.Tensor) -> bool:
    first, last = _span(part)
    begin, end = _span(whole)
    return whole.dtype == part.dtype and along_memory(whole) is not None and begin <= first and last <= end


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The places of its first and its last element in the storage, in elements."""
    first = tensor.storage_offset()
    return first, first + sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one storage share an element."""
    if one.dtype != other.dtype:
        return True
    taken = torch.zeros(max(_span(one)[1], _span(other)[1]) + 1, dtype=torch.bool)
    taken.as_strided(one.shape, one.stride(), one.storage_offset()).fill_(True)
    return bool(taken.as_strided(other.shape, other.stride(), other.storage_offset()).any())
