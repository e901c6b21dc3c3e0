"""The functions a tensor expression is written with, under the names that users of TVM, numpy and einops expect."""

from collections.abc import Sequence

from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Axis, Expr, Scalar, as_expr, binary, select, unary
from ansorlite.te.expr import cast as cast
from ansorlite.te.ops import BinaryOp, ReduceOp, UnaryOp
from ansorlite.te.tensor import reduce

# The reductions and a few functions carry the names of Python's own, as te.sum, te.max, te.all do everywhere.


def sum(body: Expr | Scalar, axis: Axis | Sequence[Axis]) -> Expr:
    """Sum over reduce axes."""
    return reduce(ReduceOp.SUM, body, axis)


def prod(body: Expr | Scalar, axis: Axis | Sequence[Axis]) -> Expr:
    """Product over reduce axes."""
    return reduce(ReduceOp.PROD, body, axis)


def max(body: Expr | Scalar, axis: Axis | Sequence[Axis]) -> Expr:
    """Maximum over reduce axes; NaN wins, as in numpy."""
    return reduce(ReduceOp.MAX, body, axis)


def min(body: Expr | Scalar, axis: Axis | Sequence[Axis]) -> Expr:
    """Minimum over reduce axes; NaN wins, as in numpy."""
    return reduce(ReduceOp.MIN, body, axis)


def maximum(a: Expr | Scalar, b: Expr | Scalar) -> Expr:
    """The greater of two values; NaN wins, as in numpy."""
    return binary(BinaryOp.MAX, a, b)


def minimum(a: Expr | Scalar, b: Expr | Scalar) -> Expr:
    """The lesser of two values; NaN wins, as in numpy."""
    return binary(BinaryOp.MIN, a, b)


def power(a: Expr | Scalar, b: Expr | Scalar) -> Expr:
    """``a`` to the power ``b``, as ``a ** b``."""
    return binary(BinaryOp.POW, a, b)


def exp(a: Expr | Scalar) -> Expr:
    """e to the power ``a``."""
    return unary(UnaryOp.EXP, a)


def log(a: Expr | Scalar) -> Expr:
    """The natural logarithm."""
    return unary(UnaryOp.LOG, a)


def sqrt(a: Expr | Scalar) -> Expr:
    """The square root."""
    return unary(UnaryOp.SQRT, a)


def rsqrt(a: Expr | Scalar) -> Expr:
    """One over the square root."""
    return unary(UnaryOp.RSQRT, a)


def tanh(a: Expr | Scalar) -> Expr:
    """The hyperbolic tangent."""
    return unary(UnaryOp.TANH, a)


def sigmoid(a: Expr | Scalar) -> Expr:
    """``1 / (1 + exp(-a))``."""
    return unary(UnaryOp.SIGMOID, a)


def erf(a: Expr | Scalar) -> Expr:
    """The error function of Gauss."""
    return unary(UnaryOp.ERF, a)


def abs(a: Expr | Scalar) -> Expr:
    """The absolute value."""
    return unary(UnaryOp.ABS, a)


def floor(a: Expr | Scalar) -> Expr:
    """The nearest integer below, in the same dtype."""
    return unary(UnaryOp.FLOOR, a)


def ceil(a: Expr | Scalar) -> Expr:
    """The nearest integer above, in the same dtype."""
    return unary(UnaryOp.CEIL, a)


def round(a: Expr | Scalar) -> Expr:
    """Round half to even, as numpy."""
    return unary(UnaryOp.ROUND, a)


def if_then_else(cond: Expr | Scalar, then: Expr | Scalar, otherwise: Expr | Scalar) -> Expr:
    """``then`` where ``cond``, else ``otherwise``; reads in the arm that is not taken are never executed."""
    return select(cond, then, otherwise)


def _logic(op: BinaryOp, conds: tuple[Expr | Scalar, ...]) -> Expr:
    if not conds:
        raise ExpressionError(f"te.{'all' if op is BinaryOp.AND else 'any'} needs at least one condition")
    result = as_expr(conds[0])
    for cond in conds[1:]:
        result = binary(op, result, cond)
    if result.dtype != "bool":
        raise ExpressionError(f"a condition is {result.dtype}, not bool; compare it with something")
    return result


def all(*conds: Expr | Scalar) -> Expr:
    """Whether every condition holds."""
    return _logic(BinaryOp.AND, conds)


def any(*conds: Expr | Scalar) -> Expr:
    """Whether some condition holds."""
    return _logic(BinaryOp.OR, conds)
