"""Sums of products as products of matrices, which matrix units compute: told from the expression alone.

An axis that only one factor depends on is one of the rows, one that only the other one depends on is one of the columns; of both,
or of none, it counts the matrices of a batch. Whatever adds up is the inner dimension, its axes one after another. So a product
of matrices is one, and so is a convolution: windows that slide are nothing but indices of a factor's elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ansorlite.machine.matrix import COLUMNS, ROWS, MatrixUnit
from ansorlite.te.expr import Axis, Binary, Cast, Expr, Read, Reduce
from ansorlite.te.index.affine import affine
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads


@dataclass(frozen=True)
class MatrixFactor:
    """One factor of the products, as the unit takes it: before it is converted to the dtype of the sum.

    Attributes:
        value: the factor.
        axes: that it depends on.
    """

    value: Expr
    axes: frozenset[Axis]

    def runs_along(self, axis: Axis) -> bool:
        """Whether its neighbours along ``axis`` lie side by side in memory."""
        return any(_stride(read, axis) == 1 for read in reads(self.value))


@dataclass(frozen=True)
class MatrixProduct:
    """How a stage is a product of matrices.

    Attributes:
        a, b: the factor of the rows, and of the columns.
        rows, columns: axes of the stage that only ``a``, or only ``b``, depends on, in their order.
        batch: the others.
        inner: the axes that add up: that along which most lies side by side in memory is the last.
    """

    a: MatrixFactor
    b: MatrixFactor
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    batch: tuple[Axis, ...]
    inner: tuple[Axis, ...]

    @property
    def steps(self) -> int:
        """How many products each element is the sum of."""
        return prod(axis.extent for axis in self.inner)


def matrix_product(tensor: Tensor, factors: str, sums: str) -> MatrixProduct | None:
    """How ``tensor`` is a product of matrices of ``factors`` that are added up in ``sums``; ``None`` if it is not.

    It is a sum of products of two factors, each a function of one read, converted to the dtype of the sum at last. There must be
    rows and columns. Of the two factors that is the one of the columns which depends on the last axis that only one of them does:
    along it the result lies side by side.
    """
    body = tensor.body
    if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM or body.dtype != sums:
        return None
    product = body.body
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return None
    found = [_factor(value, factors) for value in (product.a, product.b)]
    both = [factor for factor in found if factor is not None]
    if len(both) < len(found):
        return None
    a, b = both
    real = [axis for axis in tensor.axes if axis.extent > 1]
    alone = [axis for axis in real if (axis in a.axes) != (axis in b.axes)]
    if alone and alone[-1] in a.axes:
        a, b = b, a
    rows = tuple(axis for axis in alone if axis in a.axes)
    columns = tuple(axis for axis in alone if axis in b.axes)
    if not rows or not columns:
        return None
    batch = tuple(axis for axis in tensor.axes if axis not in alone)
    return MatrixProduct(a, b, rows, columns, batch, _inner(body.axes, a, b))


def fitting_units(tensor: Tensor, units: Sequence[MatrixUnit]) -> list[tuple[MatrixUnit, MatrixProduct]]:
    """Those that can compute ``tensor``, each with how; the best of each dtype first."""
    found = ((unit, matrix_product(tensor, unit.factors, unit.sums)) for unit in units)
    return [(unit, how) for unit, how in found if how is not None and _pays(unit, how)]


def tile_axis(axes: Sequence[Axis]) -> Axis:
    """The one of the rows' axes, or of the columns', that tiles are along: the longest."""
    return max(axes, key=lambda axis: axis.extent)


def _pays(unit: MatrixUnit, how: MatrixProduct) -> bool:
    """Whether there are rows, columns and steps for a unit at all; less than half of the steps may be zeros that fill it."""
    rows, columns = (prod(axis.extent for axis in axes) for axes in (how.rows, how.columns))
    return rows >= ROWS and columns >= COLUMNS and 2 * how.steps > unit.steps


def _factor(value: Expr, dtype: str) -> MatrixFactor | None:
    inside = value.a if isinstance(value, Cast) and value.dtype != dtype else value
    if inside.dtype != dtype or len(reads(inside)) != 1:
        return None
    return MatrixFactor(inside, frozenset(axis for axis in free_vars(inside) if isinstance(axis, Axis)))


def _inner(axes: tuple[Axis, ...], a: MatrixFactor, b: MatrixFactor) -> tuple[Axis, ...]:
    runs = [axis for axis in axes if axis.extent > 1 and (a.runs_along(axis) or b.runs_along(axis))]
    last = max(runs, key=lambda axis: (a.runs_along(axis) + b.runs_along(axis), axis.extent), default=None)
    return (*(axis for axis in axes if axis is not last), *((last,) if last is not None else ()))


def _stride(read: Read, axis: Axis) -> int | None:
    """Elements between what is read at neighbouring values of ``axis``; ``None`` where that is not always the same."""
    stride, scale = 0, 1
    for index, extent in zip(reversed(read.indices), reversed(read.tensor.shape), strict=True):
        form = affine(index)
        if form is None or (axis in form.variables and axis not in form.coefficients):
            return None
        stride += form.coefficients.get(axis, 0) * scale
        scale *= extent
    return stride
