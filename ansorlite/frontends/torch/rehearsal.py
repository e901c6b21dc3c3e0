"""A graph run once by PyTorch, on copies of its arguments: what it does besides computing new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.placement import Placement, array_of
from ansorlite.frontends.torch.views import Results, sorted_out
from ansorlite.te import dtypes


def rehearse(graph: torch.fx.GraphModule, arguments: Sequence[Any], placement: Placement) -> Results:
    """What the graph returns for ``arguments``; these are not touched, nor is PyTorch's random state.

    Raises:
        NotCompiledError: it changes arguments in place, returns tensors that overlap, or handles some that kernels cannot use
            where they are.
    """
    for argument in arguments:
        _check_usable("takes", argument, placement)
    copies = [argument.detach().clone() if isinstance(argument, torch.Tensor) else argument for argument in arguments]
    versions = [_version(copy) for copy in copies]
    with torch.random.fork_rng(devices=[placement.device] if placement.device.type == "cuda" else []):
        results = list(graph(*copies))
    if versions != [_version(copy) for copy in copies]:
        raise NotCompiledError("it changes tensors in place")
    for result in results:
        _check_usable("returns", result, placement)
    return sorted_out(copies, results)


def _check_usable(does: str, argument: Any, placement: Placement) -> None:
    if not isinstance(argument, torch.Tensor):
        return
    if argument.device != placement.device:
        raise NotCompiledError(f"it {does} a tensor on {argument.device}, and not on {placement.name}")
    if placement.device.type != "cpu":
        if argument.layout is not torch.strided or str(argument.dtype).removeprefix("torch.") not in dtypes.NUMPY:
            raise NotCompiledError(f"it {does} a tensor of {argument.dtype}, {argument.layout}, which kernels have no arrays for")
        return
    try:
        array_of(argument.detach())
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise NotCompiledError(f"it {does} a tensor of {argument.dtype} that numpy cannot view ({reason})") from error


def _version(copy: Any) -> int:
    return copy._version if isinstance(copy, torch.Tensor) else 0
