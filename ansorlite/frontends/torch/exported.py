"""A graph of Dynamo's as an ONNX model: its parameters within, its tensors as inputs, of fixed or of open shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import onnx
import torch

from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.export import export
from ansorlite.frontends.torch.exportable import exportable

#: Argument that is a size → a tensor among those given, and its dimension of that size.
Sizes: TypeAlias = Mapping[int, tuple[int, int]]


class _Closed(torch.nn.Module):
    """A graph as a module that has some of its arguments within, and returns some of its results."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        arguments: Sequence[Any],
        free: Sequence[int],
        computed: Sequence[int],
        sizes: Sizes,
    ) -> None:
        super().__init__()
        self.graph = graph
        self.arguments = list(arguments)
        self.free = list(free)
        self.computed = list(computed)
        self.sizes = dict(sizes)

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arguments = list(self.arguments)
        for position, tensor in zip(self.free, given, strict=True):
            arguments[position] = tensor
        for position, (number, dimension) in self.sizes.items():
            arguments[position] = given[number].shape[dimension]
        results = self.graph(*arguments)
        return tuple(results[position] for position in self.computed)


def exported(
    graph: torch.fx.GraphModule,
    arguments: Sequence[Any],
    free: Sequence[int],
    computed: Sequence[int],
    sizes: Sizes | None = None,
    open_dimensions: Sequence[Sequence[int]] | None = None,
) -> onnx.ModelProto:
    """``graph`` with its arguments within, but for those at ``free``; its results are those at ``computed``.

    Args:
        sizes: arguments that are no constants, but sizes of tensors.
        open_dimensions: of each free tensor; by default it has the shape that is given.

    Raises:
        NotCompiledError: PyTorch's exporter does not take it.
    """
    detached = [argument.detach() if isinstance(argument, torch.Tensor) else argument for argument in arguments]
    optimize = all(argument.dtype is not torch.bfloat16 for argument in detached if isinstance(argument, torch.Tensor))
    plain = exportable(graph)
    if plain is not graph:
        plain(*detached)  # What it does not take it says here; the exporter would go on by other ways.
    module = _Closed(plain, detached, free, computed, sizes or {})
    try:
        return export(module, [detached[n] for n in free], optimize=optimize, open_dimensions=open_dimensions)
    except Exception as error:  # PyTorch's exporter is many packages, each with errors of its own
        raise NotCompiledError(f"PyTorch cannot export it to ONNX: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """What went wrong first: the exporter's own errors only say in which of its steps that was."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
