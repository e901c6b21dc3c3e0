"""What a call of a graph returns, put together of the tensors that programs computed: as PyTorch returned it once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ansorlite.frontends.torch.views import Results, along_memory, graph_of


class Returned:
    """Takes the arguments of a call and what was computed of them; gives all results, in order.

    Those in memory of an argument are views that PyTorch takes in each call.
    """

    def __init__(self, graph: torch.fx.GraphModule, results: Results) -> None:
        # Not the results themselves: they may be large.
        self._computed = results.computed
        self._views = results.views
        self._positions = results.of_arguments
        self._template = [None if isinstance(value, torch.Tensor) else value for value in results.values]
        self._orders = [_order(results.values[position]) for position in results.computed]
        self._of_arguments = graph_of(graph, results.of_arguments) if results.of_arguments else None

    def __call__(self, arguments: Sequence[Any], computed: Sequence[torch.Tensor]) -> list[Any]:
        returned = list(self._template)
        for position, tensor, order in zip(self._computed, computed, self._orders, strict=True):
            returned[position] = _laid_out(tensor, order)
        for position, view in self._views.items():
            returned[position] = view.taken(returned)
        if self._of_arguments is not None:
            for position, tensor in zip(self._positions, self._of_arguments(*arguments), strict=True):
                returned[position] = tensor
        return returned


def _order(result: torch.Tensor) -> list[int] | None:
    """The order in which its dimensions lie in memory; ``None`` if that is their own, or it has gaps, which are not made."""
    return None if result.is_contiguous() else along_memory(result)


def _laid_out(result: torch.Tensor, order: list[int] | None) -> torch.Tensor:
    """With strides as PyTorch's result has them: what follows may take views of it that need these.

    What was computed may be a part of a larger tensor.
    """
    if order is None:
        return result.contiguous()
    return result.permute(order).contiguous().permute([order.index(dimension) for dimension in range(len(order))])
