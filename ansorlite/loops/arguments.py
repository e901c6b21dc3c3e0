"""The params of a computation's programs."""

from __future__ import annotations

from ansorlite.loops.nodes import Buffer, Scope
from ansorlite.te.tensor import Tensor


def argument(tensor: Tensor) -> Buffer:
    """The param that an input or output of a computation is."""
    return Buffer(tensor.name, tensor.shape, tensor.dtype, Scope.CONSTANT if tensor.constant else Scope.ARGUMENT)
