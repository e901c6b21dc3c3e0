"""Tensors: placeholders that the caller fills, and computes that define each element by an expression."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.checks import check_body
from ansorlite.te.expr import Axis, Expr, Read, Reduce, Scalar, as_expr, cast
from ansorlite.te.ops import ReduceOp
from ansorlite.visible import visible

_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of fixed shape. ``body`` is ``None`` for a placeholder; identity is equality.

    Attributes:
        axes: one space axis per dimension (empty for a placeholder).
        body: the element at ``axes``; a :class:`Reduce` only at its root.
        constant: of a placeholder: whether it is the same in every call, so that what depends on such alone is computed once.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[Axis, ...] = ()
    body: Expr | None = None
    constant: bool = False
    serial: int = field(default_factory=lambda: next(_serial), repr=False)

    #: Not a sequence of its rows: it is read one element at a time.
    __iter__: ClassVar[None] = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return self.body.axes if isinstance(self.body, Reduce) else ()

    @property
    def iterations(self) -> int:
        """How often the body is evaluated."""
        return math.prod(axis.extent for axis in (*self.axes, *self.reduce_axes))

    def __call__(self, *indices: Expr | int) -> Expr:
        return self[indices]

    def __getitem__(self, indices: Any) -> Expr:
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) != self.ndim:
            raise ExpressionError(f"{self.name} has {self.ndim} dimensions {self.shape} but is read with {len(items)} indices")
        nodes = []
        for dimension, item in enumerate(items):
            node = as_expr(item)
            if not dtypes.is_integer(node.dtype):
                raise ExpressionError(f"index {dimension} of {self.name} is {node.dtype}, not an integer; te.cast it to int64")
            nodes.append(cast(node, dtypes.INDEX))
        return Read(self, tuple(nodes), self.dtype)

    def __repr__(self) -> str:
        return f"Tensor({visible(self.name)}, {self.shape}, {self.dtype}{', constant' if self.constant else ''})"


def _checked_shape(shape: int | Sequence[int], name: str) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for extent in extents:
        if not _is_integer(extent):
            raise ExpressionError(f"the shape of {name} has {extent!r}, which is not an integer")
        if extent < 1:
            raise ExpressionError(f"the shape of {name} is {extents}; every extent must be at least 1")
    return tuple(int(extent) for extent in extents)


def _checked_name(name: str) -> str:
    if not isinstance(name, str):
        raise ExpressionError(f"a name is {name!r}; it must be a string")
    return name


def _is_integer(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def placeholder(
    shape: int | Sequence[int], dtype: object = "float32", name: str = "placeholder", *, constant: bool = False
) -> Tensor:
    """A tensor that the caller provides.

    Args:
        constant: its elements are the same in every call, as a model's weights are: they may be packed, and what follows from
            them alone computed, once before the first call. This makes another task of a computation, but no other result.

    Raises:
        ExpressionError: an extent that is not a positive integer, an unknown dtype, or a name that is no string.
    """
    if not isinstance(constant, bool):
        raise ExpressionError(f"constant of {name} is {constant!r}; it must be True or False")
    return Tensor(_checked_name(name), _checked_shape(shape, name), dtypes.check(dtype), constant=constant)


def reduce_axis(domain: int | tuple[int, int], name: str = "k") -> Axis:
    """An axis to reduce over: ``(0, extent)`` or an int extent.

    Raises:
        ExpressionError: the domain is neither, does not begin at 0, or is empty; or the name is no string.
    """
    ends = tuple(domain) if isinstance(domain, Iterable) else (0, domain)
    if len(ends) != 2 or not all(map(_is_integer, ends)) or ends[0] != 0 or ends[1] < 1:
        raise ExpressionError(f"the domain of reduce axis {name} is {domain!r}; it must be (0, extent) or an extent, at least 1")
    return Axis(_checked_name(name), extent=int(ends[1]), reduce=True)


def compute(shape: int | Sequence[int], fcompute: Callable[..., Expr | Scalar], name: str = "compute") -> Tensor:
    """A tensor whose element at ``(i, j, ...)`` is ``fcompute(i, j, ...)``.

    Args:
        shape: the extents; may be empty for a scalar.
        fcompute: called once with one axis per dimension.

    Raises:
        ExpressionError: the function takes another number of axes, uses an axis of another compute, has a reduction
            anywhere but at the root of its result, or reads a tensor where it has no elements; or the name is no string.
    """
    extents = _checked_shape(shape, _checked_name(name))
    if not callable(fcompute):
        raise ExpressionError(f"{name} is computed by a function of its axes, as in lambda i, j: a[i, j]; got {fcompute!r}")
    labels = _axis_names(fcompute, len(extents), name)
    axes = tuple(Axis(label, extent=extent) for label, extent in zip(labels, extents, strict=True))
    body = as_expr(fcompute(*axes), beside="float32")
    check_body(name, axes, body)
    return Tensor(name, extents, body.dtype, axes, body)


def _axis_names(fcompute: Callable[..., Any], rank: int, name: str) -> list[str]:
    parameters = list(inspect.signature(fcompute).parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [f"i{d}" for d in range(rank)]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    if not len(required) <= rank <= len(positional):
        raise ExpressionError(f"{name} has {rank} dimensions but its function takes {len(positional)} axes")
    return [p.name for p in positional[:rank]]


def reduce(op: ReduceOp, body: Expr | Scalar, axis: Axis | Sequence[Axis]) -> Expr:
    """``body`` folded over one or several reduce axes.

    Raises:
        ExpressionError: an axis that is not a reduce axis, none at all, one given twice, or a bool sum.
    """
    axes = tuple(axis) if isinstance(axis, Iterable) else (axis,)
    if not axes or not all(isinstance(a, Axis) and a.reduce for a in axes):
        hint = f"; te.{op.value}imum takes two values" if op in (ReduceOp.MAX, ReduceOp.MIN) else ""
        raise ExpressionError(f"{op.value} needs axis= one or several te.reduce_axis; got {axis!r}{hint}")
    if len(set(axes)) != len(axes):
        raise ExpressionError(f"{op.value} is given the same axis twice")
    value = as_expr(body, beside="float32")
    if value.dtype == "bool" and op in (ReduceOp.SUM, ReduceOp.PROD):
        raise ExpressionError(f"{op.value} of bool is not defined; te.cast the body to int32 or int64 first")
    return Reduce(op, value, axes, value.dtype)
