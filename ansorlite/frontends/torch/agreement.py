"""Whether a compiled graph computes what PyTorch computed: what its exporter makes of a graph is not always the same.

A number that float16 does not hold, for one, is a float of four bytes in PyTorch's operators, and infinite in an exported graph.
And an operator may be taken for another one: that shows in a few elements, by a few hundredths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from ansorlite.frontends.torch.errors import NotCompiledError

#: The most that an element may differ by, as a share of the largest one: many times what rounding does where all floats have
#: four bytes, and where some have two.
_MOST: Final = 0.01
_MOST_OF_NARROW: Final = 0.1
_NARROW: Final = (torch.float16, torch.bfloat16)


def most_apart(graph: torch.fx.GraphModule, precision: str) -> float:
    """How far results of ``graph`` may be from PyTorch's own, as a share of the largest element.

    Args:
        precision: of what its products of float32 multiply.
    """
    made = (node.meta.get("example_value") for node in graph.graph.nodes)
    narrow = any(isinstance(tensor, torch.Tensor) and tensor.dtype in _NARROW for tensor in made)
    return _MOST_OF_NARROW if narrow or precision != "float32" else _MOST


def check_shapes(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    """
    Raises:
        NotCompiledError: results of the same arguments have other shapes or dtypes.
    """
    ours, theirs = ([_kind(tensor) for tensor in tensors] for tensors in (found, expected))
    if ours != theirs:
        raise NotCompiledError(f"PyTorch's exporter gives it results of {ours}, where {theirs} are due")


def _kind(tensor: torch.Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


def check_agreement(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], most: float) -> None:
    """Compare results of the same arguments; those of integers may differ by what was rounded before, and are left aside.

    Args:
        most: that an element may differ by, as a share of the largest one.

    Raises:
        NotCompiledError: one has numbers where the other has none, or another sign of infinity, or differs by far.
    """
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if not theirs.dtype.is_floating_point:
            continue
        x, y = ours.double(), theirs.double()
        finite = torch.isfinite(y)
        alike = torch.equal(torch.isfinite(x), finite) and torch.equal(x[~finite].nan_to_num(), y[~finite].nan_to_num())
        if not alike:
            raise NotCompiledError(f"as PyTorch exports it, result {number} is not finite in other places than PyTorch's own")
        apart, largest = (x - y)[finite].abs(), y[finite].abs()
        # Numbers below the least normal one have few digits, or none where processors flush them.
        if apart.numel() and apart.max() > most * largest.max() + torch.finfo(theirs.dtype).tiny:
            share = float(apart.max() / largest.max())
            raise NotCompiledError(f"as PyTorch exports it, result {number} differs from PyTorch's own by {share:.0%}")
