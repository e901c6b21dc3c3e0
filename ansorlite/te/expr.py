"""Expression nodes: frozen and hash-consed, so that equal expressions are one object and ``is`` is equality.

The same nodes serve tensor expressions (leaves :class:`Axis` and :class:`Read`) and the loop IR (leaves :class:`Var`
and ``loops.Load``). Every node has a dtype; index arithmetic is plain ``int64`` arithmetic.

Build expressions with Python's operators on nodes, or with ``te.functions``: both check types. The node classes
themselves check nothing, and simplify nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.operators import Operators
from ansorlite.te.ops import BINARY, INDEX_ARITHMETIC, UNARY, BinaryOp, OpInfo, ReduceOp, UnaryOp
from ansorlite.visible import visible

if TYPE_CHECKING:
    from ansorlite.te.tensor import Tensor

Scalar: TypeAlias = bool | int | float | np.generic


class _HashConsed(type):
    """Metaclass: constructing a node that exists returns the one that exists."""

    _table: ClassVar[WeakValueDictionary[tuple[Any, ...], Expr]] = WeakValueDictionary()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # All fields, given in order, are the key of most nodes; then there is no need to make another.
        known = None if kwargs else _HashConsed._table.get((cls, *args))
        if known is not None:
            return known
        node = super().__call__(*args, **kwargs)
        return _HashConsed._table.setdefault(node._key(), node)


class Expr(Operators, metaclass=_HashConsed):
    """A value that depends on axes. Immutable; ``==`` builds a comparison whose truth is identity.

    ``a == b`` and ``a != b`` are expressions like any other operator, but may be used as a Python condition: then they
    say whether both are the same node. Any other comparison as a Python condition is an error.
    """

    dtype: str

    def children(self) -> tuple[Expr, ...]:
        """The direct operands, in order."""
        return ()

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        """This node over other operands (same number)."""
        assert not children
        return self

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *self.__dict__.values())  # the fields, in order

    def _binary(self, op: BinaryOp, a: Expr | Scalar, b: Expr | Scalar) -> Expr:
        return binary(op, a, b)

    def _unary(self, op: UnaryOp) -> Expr:
        return unary(op, self)


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A literal. ``value`` is a Python bool, int or float according to ``dtype``."""

    value: bool | int | float
    dtype: str

    def _key(self) -> tuple[Any, ...]:
        # float.hex keeps 0.0 and -0.0 apart and makes NaN equal to itself.
        value = self.value.hex() if isinstance(self.value, float) else self.value
        return (Const, type(self.value), value, self.dtype)


_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A loop variable. Each one made is a new one, whatever its name."""

    name: str
    dtype: str = dtypes.INDEX
    serial: int = field(default_factory=lambda: next(_serial), repr=False)


@dataclass(frozen=True, eq=False)
class Axis(Var):
    """An axis of a compute definition: ``0 <= axis < extent``. ``reduce`` axes are folded away by a reduction."""

    extent: int = 1
    reduce: bool = False

    def __repr__(self) -> str:
        return f"Axis({visible(self.name)}, {self.extent}{', reduce' if self.reduce else ''})"


@dataclass(frozen=True, eq=False)
class Binary(Expr):
    op: BinaryOp
    a: Expr
    b: Expr
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        a, b = children
        return Binary(self.op, a, b, self.dtype)

    def __bool__(self) -> bool:
        if self.op is BinaryOp.EQ:
            return self.a is self.b
        if self.op is BinaryOp.NE:
            return self.a is not self.b
        return super().__bool__()


@dataclass(frozen=True, eq=False)
class Unary(Expr):
    op: UnaryOp
    a: Expr
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        (a,) = children
        return Unary(self.op, a, self.dtype)


@dataclass(frozen=True, eq=False)
class Select(Expr):
    """``then if cond else otherwise``, lazily: reads in the arm that is not taken are never executed."""

    cond: Expr
    then: Expr
    otherwise: Expr
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return (self.cond, self.then, self.otherwise)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        cond, then, otherwise = children
        return Select(cond, then, otherwise, self.dtype)


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """``a`` converted: as ``numpy.ndarray.astype`` does, but from float to integer toward zero to the nearest that fits."""

    a: Expr
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        (a,) = children
        return Cast(a, self.dtype)


@dataclass(frozen=True, eq=False)
class Read(Expr):
    """One element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return self.indices

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return Read(self.tensor, children, self.dtype)


@dataclass(frozen=True, eq=False)
class Reduce(Expr):
    """``body`` folded over ``axes``. Only ever the root of a compute body."""

    op: ReduceOp
    body: Expr
    axes: tuple[Axis, ...]
    dtype: str

    def children(self) -> tuple[Expr, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        (body,) = children
        return Reduce(self.op, body, self.axes, self.dtype)


# Checked construction --------------------------------------------------------------------------------------------


def const(value: Scalar, dtype: str) -> Const:
    """A literal of ``dtype``, rounded to it.

    Raises:
        ExpressionError: an integer that ``dtype`` cannot hold.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if dtype == "bool":
        return Const(bool(plain), dtype)
    if dtypes.is_float(dtype):
        with np.errstate(over="ignore"):
            return Const(float(dtypes.NUMPY[dtype].type(plain)), dtype)
    least, greatest = dtypes.limits(dtype)
    number = int(plain)
    if not least <= number <= greatest:
        raise ExpressionError(f"{number} does not fit in {dtype}; te.cast the other operand to a wider dtype")
    return Const(number, dtype)


def as_expr(value: Expr | Scalar, beside: str | None = None) -> Expr:
    """``value`` as a node. A Python number takes the dtype ``beside`` it when that can hold its kind (NEP 50).

    Alone, a float is float32, the default dtype, and an int an index.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        return const(value, dtypes.check(value.dtype))
    if isinstance(value, bool):
        return const(value, "bool")
    if isinstance(value, int):
        return const(value, beside if beside is not None and beside != "bool" else dtypes.INDEX)
    if isinstance(value, float):
        dtype = "float32" if beside is None else beside if dtypes.is_float(beside) else "float64"
        return const(value, dtype)
    raise ExpressionError(f"{value!r} is not an expression or a number; index a tensor to read an element of it")


def _checked_operands(symbol: str, info: OpInfo, operands: tuple[Expr, ...], dtype: str) -> tuple[Expr, ...]:
    kind = "b" if dtype == "bool" else "f" if dtypes.is_float(dtype) else "i"
    if kind not in info.kinds and dtype != info.only:
        raise ExpressionError(f"{symbol} is not defined on {dtype}; te.cast the operand first")
    if info.to_float and kind == "i":
        dtype = "float64"
    return tuple(cast(x, dtype) for x in operands)


def typed_binary(op: BinaryOp, a: Expr | Scalar, b: Expr | Scalar) -> Binary:
    """``a op b`` with numpy's type rules, as it is written.

    Raises:
        ExpressionError: the operation is not defined on these dtypes, or numpy refuses to mix them.
    """
    x = as_expr(a, b.dtype if isinstance(b, Expr) else None)
    y = as_expr(b, x.dtype)
    info = BINARY[op]
    x, y = _checked_operands(op.value, info, (x, y), dtypes.promote(x.dtype, y.dtype))
    return Binary(op, x, y, info.dtype(x.dtype))


def binary(op: BinaryOp, a: Expr | Scalar, b: Expr | Scalar) -> Expr:
    """``a op b`` with numpy's type rules; index arithmetic is folded where that is exact, so that it stays small.

    Raises:
        ExpressionError: the operation is not defined on these dtypes, or numpy refuses to mix them.
    """
    if type(b) is int and isinstance(a, Expr) and a.dtype == dtypes.INDEX:
        b = const(b, dtypes.INDEX)
    if op in INDEX_ARITHMETIC and isinstance(a, Expr) and isinstance(b, Expr) and a.dtype == b.dtype == dtypes.INDEX:
        # What typed_binary would give, ten times as fast.
        folded = _fold(op, a, b)
        return Binary(op, a, b, dtypes.INDEX) if folded is None else folded
    node = typed_binary(op, a, b)
    if node.dtype == dtypes.INDEX:
        folded = _fold(op, node.a, node.b)
        return node if folded is None else folded
    return node


#: ``x op n`` is ``x`` for these numbers; and where the operation commutes, ``n op x`` is too.
_NEUTRAL: Final = {BinaryOp.ADD: 0, BinaryOp.SUB: 0, BinaryOp.MUL: 1, BinaryOp.FLOORDIV: 1}


def _fold(op: BinaryOp, x: Expr, y: Expr) -> Expr | None:
    if isinstance(y, Const) and _NEUTRAL.get(op) == y.value:
        return x
    if isinstance(x, Const) and op in (BinaryOp.ADD, BinaryOp.MUL) and _NEUTRAL[op] == x.value:
        return y
    if isinstance(x, Const) and isinstance(y, Const) and op in INDEX_ARITHMETIC:
        if op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and y.value == 0:
            return None
        value, (least, greatest) = INDEX_ARITHMETIC[op](x.value, y.value), dtypes.limits(dtypes.INDEX)
        return Const(int(value), dtypes.INDEX) if least <= value <= greatest else None  # which wraps around when it is run
    return None


def unary(op: UnaryOp, a: Expr | Scalar) -> Expr:
    """``op(a)`` with numpy's type rules.

    Raises:
        ExpressionError: the operation is not defined on the operand's dtype.
    """
    x = as_expr(a)
    info = UNARY[op]
    if op in (UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND) and dtypes.is_integer(x.dtype):
        return x
    (x,) = _checked_operands(op.value, info, (x,), x.dtype)
    return Unary(op, x, info.dtype(x.dtype))


def cast(a: Expr | Scalar, dtype: object) -> Expr:
    """``a`` converted to ``dtype``: rounded to a float, wrapped to an integer from an integer.

    From float to integer the fraction is cut off; what does not fit becomes the nearest integer that does, NaN becomes 0.

    Raises:
        ExpressionError: an unknown dtype, or a literal integer that ``dtype`` cannot hold.
    """
    name = dtypes.check(dtype)
    x = as_expr(a)
    if x.dtype == name:
        return x
    if isinstance(x, Const) and (dtypes.is_float(name) or not dtypes.is_float(x.dtype)):
        return const(x.value, name)
    return Cast(x, name)


def select(cond: Expr | Scalar, then: Expr | Scalar, otherwise: Expr | Scalar) -> Expr:
    """``then if cond else otherwise``; only the taken arm is executed.

    Raises:
        ExpressionError: the condition is not bool, or the arms' dtypes do not mix.
    """
    c = as_expr(cond)
    if c.dtype != "bool":
        raise ExpressionError(f"the condition of if_then_else is {c.dtype}, not bool; compare it with something")
    x = as_expr(then, otherwise.dtype if isinstance(otherwise, Expr) else None)
    y = as_expr(otherwise, x.dtype)
    dtype = dtypes.promote(x.dtype, y.dtype)
    return Select(c, cast(x, dtype), cast(y, dtype), dtype)
