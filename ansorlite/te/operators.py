"""Python's operators on expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.ops import BinaryOp, UnaryOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from ansorlite.te.expr import Expr, Scalar


class Operators:
    """Python's operators, in terms of the two methods that make the node of an operation."""

    dtype: str

    _binary: Callable[[BinaryOp, Any, Any], Expr]
    _unary: Callable[[UnaryOp], Expr]

    __hash__ = object.__hash__

    def __add__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.ADD, self, other)

    def __radd__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.ADD, other, self)

    def __sub__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.SUB, self, other)

    def __rsub__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.SUB, other, self)

    def __mul__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.MUL, self, other)

    def __rmul__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.MUL, other, self)

    def __truediv__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.DIV, self, other)

    def __rtruediv__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.DIV, other, self)

    def __floordiv__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.FLOORDIV, self, other)

    def __rfloordiv__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.FLOORDIV, other, self)

    def __mod__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.MOD, self, other)

    def __rmod__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.MOD, other, self)

    def __pow__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.POW, self, other)

    def __rpow__(self, other: Scalar) -> Expr:
        return self._binary(BinaryOp.POW, other, self)

    def __and__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.BITAND, self, other)

    def __or__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.BITOR, self, other)

    def __xor__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.BITXOR, self, other)

    def __lshift__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.SHL, self, other)

    def __rshift__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.SHR, self, other)

    def __lt__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.LT, self, other)

    def __le__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.LE, self, other)

    def __gt__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.GT, self, other)

    def __ge__(self, other: Expr | Scalar) -> Expr:
        return self._binary(BinaryOp.GE, self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, Operators | bool | int | float | np.generic):
            return NotImplemented
        return self._binary(BinaryOp.EQ, self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, Operators | bool | int | float | np.generic):
            return NotImplemented
        return self._binary(BinaryOp.NE, self, other)

    def __neg__(self) -> Expr:
        return self._unary(UnaryOp.NEG)

    def __abs__(self) -> Expr:
        return self._unary(UnaryOp.ABS)

    def __invert__(self) -> Expr:
        if self.dtype == "bool":
            return self._unary(UnaryOp.NOT)
        if not dtypes.is_integer(self.dtype):
            raise ExpressionError(f"~ is for integers and bool, not {self.dtype}")
        return self._binary(BinaryOp.BITXOR, self, -1 if dtypes.is_signed(self.dtype) else np.iinfo(self.dtype).max)

    def __bool__(self) -> bool:
        raise ExpressionError(
            "an expression has no truth value while it is being written; use te.if_then_else, te.all and te.any "
            "instead of Python's if, and, or"
        )
