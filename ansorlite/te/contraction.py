"""Sums of products of two values, evaluated as a batched matrix product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.alignment import CACHE_LINE
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Expr, Reduce
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars

Array: TypeAlias = np.ndarray[Any, Any]

#: To start numpy's innermost loop takes as long as so many of its steps.
_FEW: Final = 8

#: So many products are added up in float32, at most, before their sum is added in float64.
_IN_SINGLE: Final = 512


@dataclass(frozen=True)
class Contraction:
    """``sum(a * b)``. The fields below list dimensions of the tensor's grid (space axes, then reduce axes).

    Attributes:
        a, b: the factors.
        batch: space dimensions that both factors depend on, or neither.
        rows, columns: space dimensions that only ``a``, only ``b`` depends on.
        reduced: reduce dimensions; both factors depend on each.
    """

    a: Expr
    b: Expr
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    reduced: tuple[int, ...]

    def elements(self, extents: tuple[int, ...]) -> int:
        """Elements of the factors and the result together, for a block of these extents.

        It falls whichever extent falls, so that cutting a block always gets somewhere.
        """

        def size(*dimensions: int) -> int:
            return math.prod(extents[d] for d in dimensions)

        return size(*self.batch) * (
            size(*self.rows, *self.reduced) + size(*self.reduced, *self.columns) + size(*self.rows, *self.columns)
        )


def contraction(tensor: Tensor) -> Contraction | None:
    """``tensor`` as a contraction, or ``None`` if it is not one.

    It must be a sum of products in which both factors depend on every reduce axis. float16 and bfloat16 are left out:
    there every single product is rounded.
    """
    body = tensor.body
    if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM or body.dtype in dtypes.STORAGE_FLOATS:
        return None
    product = body.body
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return None
    in_a, in_b = free_vars(product.a), free_vars(product.b)
    if not all(axis in in_a and axis in in_b for axis in body.axes):
        return None
    space = list(enumerate(tensor.axes))
    return Contraction(
        product.a,
        product.b,
        batch=tuple(d for d, axis in space if (axis in in_a) == (axis in in_b)),
        rows=tuple(d for d, axis in space if axis in in_a and axis not in in_b),
        columns=tuple(d for d, axis in space if axis in in_b and axis not in in_a),
        reduced=tuple(range(tensor.ndim, tensor.ndim + len(body.axes))),
    )


def contract(a: Array, b: Array, of: Contraction, shape: tuple[int, ...], single: bool = False) -> Array:
    """The sum over the reduced dimensions of ``a * b``.

    Args:
        a, b: the factors, broadcastable to ``shape``.
        shape: the extents of the block.
        single: whether short sums of float32 may be rounded to it.

    Returns:
        An array over the space dimensions: float64 for floats, else of the factors' dtype, wrapped.
    """

    # The larger matrix comes second: its rows are the result's, and long.
    few, many = sorted(((a, of.rows), (b, of.columns)), key=lambda factor: math.prod(shape[d] for d in factor[1]))
    wide = np.float32 if single and a.dtype == b.dtype == np.float32 else np.float64

    def matrices(x: Array, first: tuple[int, ...], second: tuple[int, ...]) -> Array:
        own = {*of.batch, *first, *second}
        whole = np.broadcast_to(x, tuple(extent if d in own else 1 for d, extent in enumerate(shape)))
        if _ease(whole, first) > _ease(whole, second):
            return matrices(x, second, first).swapaxes(1, 2)
        ordered = whole.transpose(*of.batch, *first, *second, *(d for d in range(len(shape)) if d not in own))
        if dtypes.is_float(x.dtype.name):  # one copy, in the order and the dtype that are wanted
            ordered = ordered.astype(wide, order="C", copy=False)
        return ordered.reshape([math.prod(shape[d] for d in dimensions) for dimensions in (of.batch, first, second)])

    product = _matmul(matrices(few[0], few[1], of.reduced), matrices(many[0], of.reduced, many[1]))
    order = (*of.batch, *few[1], *many[1])
    return product.reshape(tuple(shape[d] for d in order)).transpose(tuple(np.argsort(order)))


def _ease(x: Array, dimensions: tuple[int, ...]) -> tuple[int, bool, int]:
    """How well a copy goes whose innermost loop is along the last of these dimensions: not in a few steps, and along memory."""
    last = next((d for d in reversed(dimensions) if x.shape[d] > 1), None)
    if last is None:
        return 1, False, 1
    return min(x.shape[last], _FEW), abs(x.strides[last]) < CACHE_LINE, x.shape[last]


def _matmul(a: Array, b: Array) -> Array:
    if dtypes.is_integer(a.dtype.name):
        # A product of doubles is exact, and far faster than numpy's integer one, while every sum stays below 2**53.
        largest = _magnitude(a) * _magnitude(b) * a.shape[-1]
        if largest >= 1 << 53:
            return np.asarray(np.matmul(a, b))
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return np.asarray(exact.astype(np.int64).astype(a.dtype))
    if a.dtype == np.float32:
        return _by_parts(a, b)
    return np.asarray(np.matmul(a, b))


def _by_parts(a: Array, b: Array) -> Array:
    """The product of float32 matrices in float64, but for what short parts of its sums are rounded by."""
    terms = a.shape[-1]
    step = -(-terms // max(-(-terms // _IN_SINGLE), 1))
    total: Array = np.matmul(a[..., :step], b[..., :step, :]).astype(np.float64)
    for begin in range(step, terms, step):
        total += np.matmul(a[..., begin : begin + step], b[..., begin : begin + step, :])
    return total


def _magnitude(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))
