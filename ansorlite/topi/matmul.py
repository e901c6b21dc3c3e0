"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.topi.elementwise import broadcast_read, broadcast_shape
from ansorlite.topi.wide import narrow, wide


def gemm(a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False, result: str | None = None) -> Tensor:
    """``a @ b`` of two matrices, each read transposed if so said: no transposed copy is made.

    Args:
        result: dtype of the product; by default that of the matrices.

    Raises:
        ExpressionError: not matrices, or inner extents that differ.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ExpressionError(f"gemm needs two matrices; the shapes are {a.shape} and {b.shape}")
    rows, inner = reversed(a.shape) if transpose_a else a.shape
    inner_b, columns = reversed(b.shape) if transpose_b else b.shape
    if inner != inner_b:
        raise ExpressionError(f"gemm: the inner extents {inner} and {inner_b} of {a.shape} and {b.shape} differ")
    k = te.reduce_axis(inner, name="k")

    def element(i: Expr, j: Expr) -> Expr:
        left, right = a[k, i] if transpose_a else a[i, k], b[j, k] if transpose_b else b[k, j]
        return te.sum(wide(left) * wide(right), axis=k)

    return narrow(te.compute((rows, columns), element, name="gemm"), result or dtypes.promote(a.dtype, b.dtype))


def matmul(a: Tensor, b: Tensor, *, result: str | None = None) -> Tensor:
    """``numpy.matmul``: the last two dimensions multiply, those before them broadcast, vectors are rows or columns.

    Args:
        result: dtype of the product; by default that of the operands.

    Raises:
        ExpressionError: a scalar operand, inner extents that differ, or batch shapes that do not broadcast.
    """
    total = multiply_matrices(a, b, lambda left, right, *_: wide(left) * wide(right), "matmul")
    return narrow(total, result or dtypes.promote(a.dtype, b.dtype))


def multiply_matrices(a: Tensor, b: Tensor, product: Callable[[Expr, Expr, Expr | None, Expr | None], Expr], name: str) -> Tensor:
    """:func:`matmul`, with something else in the place of a product of two elements; it is told the row and the column."""
    if a.ndim == 0 or b.ndim == 0:
        raise ExpressionError("matmul needs operands of at least one dimension")
    inner, inner_b = a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0]
    if inner != inner_b:
        raise ExpressionError(f"matmul: the inner extents {inner} and {inner_b} of {a.shape} and {b.shape} differ")
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    k = te.reduce_axis(inner, name="k")

    def element(*axes: Expr) -> Expr:
        lead = axes[: len(batch)]
        i = axes[len(batch) : len(batch) + len(rows)]
        j = axes[len(axes) - len(columns) :] if columns else ()
        left = broadcast_read(a, (*lead, *i, k), (*batch, *rows, inner))
        right = broadcast_read(b, (*lead, k, *j), (*batch, inner, *columns))
        return te.sum(product(left, right, i[0] if i else None, j[0] if j else None), axis=k)

    return te.compute((*batch, *rows, *columns), element, name=name)
