"""Factors of a sum of products that are stored in a narrower dtype than they are multiplied in."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from ansorlite.analysis.access import axes_of
from ansorlite.analysis.dot import element_read
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Expr, Read, Reduce
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars

#: A factor whose elements are used less often than this stays in its own dtype, of which caches hold more.
_LEAST_REUSE: Final = 32


@dataclass(frozen=True)
class Conversion:
    """A factor that is a function of one element, which is narrower than it.

    Attributes:
        value: the factor.
        read: the read of the element.
        uses: how often each element is used.
    """

    value: Expr
    read: Read
    uses: int


def conversions(tensor: Tensor) -> tuple[Conversion, ...]:
    """The factors of ``tensor`` that are worth a copy of their values in the dtype of the sum.

    That is so where the elements are used many times: to convert a scalar for one use costs as much as two multiply-adds.
    """
    return tuple(each for each in convertible(tensor) if each.uses >= _LEAST_REUSE)


def convertible(tensor: Tensor) -> tuple[Conversion, ...]:
    """The factors of ``tensor``, a float sum of products, that can be converted into copies, whether that pays or not."""
    body = tensor.body
    if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM or not dtypes.is_float(body.dtype):
        return ()
    product = body.body
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return ()
    found = []
    for value in dict.fromkeys((product.a, product.b)):
        read = element_read(value)
        if read is None or dtypes.size(read.dtype) >= dtypes.size(value.dtype):
            continue
        used = free_vars(read)
        found.append(Conversion(value, read, prod(axis.extent for axis in axes_of(tensor) if axis not in used)))
    return tuple(found)
