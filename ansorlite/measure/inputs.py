"""Inputs to measure and check with: well conditioned, in range where they are indices, the same for the same seed."""

from __future__ import annotations

import numpy as np

from ansorlite.measure.filling import Fill, fill
from ansorlite.runtime.arguments import Array, empty
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Binary, Expr, Read
from ansorlite.te.ops import BinaryOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import reads, walk

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.MOD)
_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


def make_inputs(dag: ComputeDAG, rng: np.random.Generator, positive: bool = False) -> list[Array]:
    """Arrays for the inputs of ``dag``, in call order.

    Floats are uniform in [-1, 1), or in [0.5, 1.5) if ``positive`` (for what takes roots and logarithms). Integers are
    small: so small that they fit where they index a tensor, and never zero where they divide.
    """
    arrays = []
    for tensor, what in zip(dag.inputs, fills(dag), strict=True):
        array = empty(tensor.shape, tensor.dtype)
        fill(array.view(np.uint16) if tensor.dtype == "bfloat16" else array, what, rng, positive)
        arrays.append(array)
    return arrays


def fills(dag: ComputeDAG) -> list[Fill]:
    """What the inputs of ``dag`` are filled with, one after another, in call order."""
    ranges = _integer_ranges(dag)
    return [Fill(tensor.shape, tensor.dtype, *ranges.get(tensor, _default_range(tensor))) for tensor in dag.inputs]


def _default_range(tensor: Tensor) -> tuple[int, int]:
    return (-4, 5) if dtypes.is_signed(tensor.dtype) else (0, 9)


def _integer_ranges(dag: ComputeDAG) -> dict[Tensor, tuple[int, int]]:
    """For integer tensors that index, shift or divide: the range ``[low, high)`` in which that is defined.

    A tensor hands the range of its values to the integer tensors it is made from: exact for copies and sums of
    nothing else, a good guess otherwise.
    """
    ranges: dict[Tensor, tuple[int, int]] = {}

    def limit(expr: Expr, low: int, high: int) -> None:
        for read in reads(expr):
            if dtypes.is_integer(read.tensor.dtype):
                old_low, old_high = ranges.get(read.tensor, (low, high))
                low, high = max(low, old_low), min(high, old_high)
                ranges[read.tensor] = (low, max(high, low + 1))

    for tensor in reversed(dag.computes):
        assert tensor.body is not None
        if tensor in ranges:
            limit(tensor.body, *ranges[tensor])
        for node in walk(tensor.body):
            if isinstance(node, Read):
                for index, extent in zip(node.indices, node.tensor.shape, strict=True):
                    limit(index, 0, extent)
            elif isinstance(node, Binary) and dtypes.is_integer(node.dtype):
                if node.op in _DIVISIONS:
                    limit(node.b, 1, 9)
                elif node.op in _SHIFTS:
                    limit(node.b, 0, 5)
    return ranges
