"""What a compute's body must satisfy, checked at the line that makes it."""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.errors import ExpressionError
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Cast, Const, Expr, Read, Reduce, Select, Unary, Var
from ansorlite.te.index.form import form_of
from ansorlite.te.index.ranges import bounds
from ansorlite.te.numeric import apply, convert
from ansorlite.te.traversal import executed_reads, free_vars, walk

Array: TypeAlias = np.ndarray[Any, Any]

#: Indices that are not affine are tried out, if they depend on no more points of the domain than this.
_MOST_POINTS: Final = 1 << 20


def check_body(name: str, axes: tuple[Axis, ...], body: Expr) -> None:
    """Check the body of compute ``name`` over its space ``axes``.

    Raises:
        ExpressionError: a reduction that is not the root, an axis that is not the compute's own, or a read that is
            certainly executed (it is behind no ``if_then_else``) and certainly out of range somewhere. Affine indices
            are decided exactly; others too, unless their domain is very large or they depend on data.
    """
    _check_reductions(name, body)
    _check_axes(name, axes, body)
    for read in executed_reads(body):
        for dimension in range(len(read.indices)):
            _check_index(name, read, dimension)


def _check_reductions(name: str, body: Expr) -> None:
    inner = body.body if isinstance(body, Reduce) else body
    if any(isinstance(node, Reduce) for node in walk(inner)):
        raise ExpressionError(
            f"{name} has a reduction inside an element-wise expression; give the reduction a te.compute of its own and read that"
        )


def _check_axes(name: str, axes: tuple[Axis, ...], body: Expr) -> None:
    known = {*axes, *(body.axes if isinstance(body, Reduce) else ())}
    for node in walk(body):
        if isinstance(node, Var) and node not in known:
            reducible = isinstance(node, Axis) and node.reduce
            cure = "reduce over it with te.sum(..., axis=...)" if reducible else "it belongs to another compute"
            raise ExpressionError(f"{name} uses axis {node.name}, which is not one of its own; {cure}")


def _check_index(name: str, read: Read, dimension: int) -> None:
    index, extent = read.indices[dimension], read.tensor.shape[dimension]
    least, greatest = bounds(index)
    if least >= 0 and greatest < extent:
        return
    if not form_of(index).over_variables:
        exact = _tried_out(index)
        if exact is None or (exact[0] >= 0 and exact[1] < extent):
            return
        least, greatest = exact
    span = f"is {least}" if least == greatest else f"spans {least}..{greatest}"
    raise ExpressionError(
        f"in {name}, index {dimension} of {read.tensor.name} {span} but its valid range is 0..{extent - 1}; "
        "guard the read with te.if_then_else"
    )


def _tried_out(index: Expr) -> tuple[int, int] | None:
    """The least and the greatest value of ``index`` by trying its whole domain; ``None`` if that cannot be done."""
    axes = [var for var in free_vars(index) if isinstance(var, Axis)]
    if math.prod(axis.extent for axis in axes) > _MOST_POINTS or any(isinstance(node, Read) for node in walk(index)):
        return None
    values: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for node in walk(index):
            values[node] = _value(node, values, axes)
    return int(values[index].min()), int(values[index].max())


def _value(node: Expr, values: dict[Expr, Array], axes: list[Axis]) -> Array:
    match node:
        case Const():
            return np.asarray(node.value, dtypes.NUMPY[node.dtype])
        case Axis():
            return np.arange(node.extent).reshape([node.extent if axis is node else 1 for axis in axes])
        case Binary(op, a, b, dtype):
            return np.asarray(apply(op, (values[a], values[b]), a.dtype, dtype))
        case Unary(op, a, dtype):
            return np.asarray(apply(op, (values[a],), a.dtype, dtype))
        case Cast(a, dtype):
            return np.asarray(convert(values[a], dtype))
        case Select(cond, then, otherwise):
            return np.where(values[cond], values[then], values[otherwise])
        case _:
            raise TypeError(f"a {type(node).__name__} is not an index expression")
