"""Borders: tensors with elements added (or cut off) at their edges."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr, Scalar, as_expr
from ansorlite.te.tensor import Tensor


class PadMode(Enum):
    """What the elements of a border are."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    EDGE = "edge"
    WRAP = "wrap"


def pad(x: Tensor, *, before: Sequence[int], after: Sequence[int], value: Scalar = 0, mode: PadMode = PadMode.CONSTANT) -> Tensor:
    """``x`` with ``before[d]`` and ``after[d]`` elements more at the two ends of dimension ``d``.

    A stage of its own, so that a schedule may compute it where it likes; ``x`` itself when there is nothing to add.
    Negative counts cut elements off.

    Raises:
        ExpressionError: not one count for each dimension, nothing left, or a reflection wider than the tensor.
    """
    if len(before) != x.ndim or len(after) != x.ndim:
        raise ExpressionError(f"pad needs a count before and after for each of the {x.ndim} dimensions of {x.shape}")
    if not any(before) and not any(after):
        return x
    if mode is PadMode.REFLECT and any(max(b, a) >= e > 0 for b, a, e in zip(before, after, x.shape, strict=True)):
        raise ExpressionError(
            f"pad by reflection adds fewer elements than the tensor has; {x.shape} cannot take {before} and {after}"
        )
    shape = tuple(e + b + a for e, b, a in zip(x.shape, before, after, strict=True))

    def element(*axes: Expr) -> Expr:
        inner = [axis - b if b else axis for axis, b in zip(axes, before, strict=True)]
        if mode is not PadMode.CONSTANT:
            outside = [b > 0 or a > 0 for b, a in zip(before, after, strict=True)]
            return x[tuple(_source(i, e, mode) if o else i for i, e, o in zip(inner, x.shape, outside, strict=True))]
        conditions: list[Expr] = []
        for index, extent, b, a in zip(inner, x.shape, before, after, strict=True):
            conditions += [index >= 0] if b > 0 else []
            conditions += [index < extent] if a > 0 else []
        read = x[tuple(inner)]
        border = te.cast(as_expr(value, beside=x.dtype), x.dtype)
        return te.if_then_else(te.all(*conditions), read, border) if conditions else read

    return te.compute(shape, element, name="pad")


def _source(index: Expr, extent: int, mode: PadMode) -> Expr:
    """The element of ``range(extent)`` that a position outside of it takes its value from."""
    match mode:
        case PadMode.EDGE:
            return te.minimum(te.maximum(index, 0), extent - 1)
        case PadMode.WRAP:
            return index % extent
        case _:
            from_start = te.if_then_else(index < 0, -index, index)
            return te.if_then_else(from_start >= extent, 2 * (extent - 1) - from_start, from_start)
