"""Short convolutions: sums of products in which a small window slides over one factor with unit stride.

What is looked for is a relation of indices, whatever the operator is called and however its dimensions are ordered::

    C[.., y, ..] = sum(D[.., y + r + c, ..] * F[.., r, ..])      for one or several pairs (y, r)

where nothing else reads ``y`` or ``r``, and both factors are used again along other axes: what is computed once for an
element of either factor is then shared by many products.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.te.expr import Axis, Binary, Read, Reduce
from ansorlite.te.index.affine import affine
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars

#: A window of more taps is not short.
MAX_TAPS = 7


@dataclass(frozen=True)
class WindowAxes:
    """One pair ``(y, r)``.

    Attributes:
        space: ``y``, an axis of the output.
        tap: ``r``, a reduce axis.
        data_dim: the dimension of the data that ``y + r + offset`` indexes.
        filter_dim: the dimension of the filter that ``r`` indexes.
    """

    space: Axis
    tap: Axis
    data_dim: int
    filter_dim: int
    offset: int


@dataclass(frozen=True)
class ShortConvolution:
    """A compute as ``sum(data * filter)`` with windows, in the order of the data's dimensions."""

    data: Read
    filter: Read
    windows: tuple[WindowAxes, ...]


def short_convolution(tensor: Tensor) -> ShortConvolution | None:
    """``tensor`` as a short convolution, or ``None`` if it is not one."""
    body = tensor.body
    if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM:
        return None
    product = body.body
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL:
        return None
    a, b = product.a, product.b
    if not isinstance(a, Read) or not isinstance(b, Read) or a.tensor is b.tensor:
        return None
    return _recognised(tensor, a, b) or _recognised(tensor, b, a)


def _recognised(tensor: Tensor, data: Read, filter_: Read) -> ShortConvolution | None:
    windows = tuple(w for dim in range(len(data.indices)) if (w := _window(data, filter_, dim)) is not None)
    if not windows:
        return None
    sliding = {axis for w in windows for axis in (w.space, w.tap)}
    others = [axis for axis in (*tensor.axes, *tensor.reduce_axes) if axis not in sliding and axis.extent > 1]
    in_data = {v for index in data.indices for v in free_vars(index)}
    in_filter = {v for index in filter_.indices for v in free_vars(index)}
    shared = any(axis.reduce and axis in in_data and axis in in_filter for axis in others)
    reused = any(not axis.reduce and axis not in in_data for axis in others)
    return ShortConvolution(data, filter_, windows) if shared and reused else None


def _window(data: Read, filter_: Read, dim: int) -> WindowAxes | None:
    """The window that slides along dimension ``dim`` of the data, if one does."""
    form = affine(data.indices[dim])
    if form is None or len(form.terms) != 2 or any(coefficient != 1 for _, coefficient in form.terms):
        return None
    axes = [term for term, _ in form.terms if isinstance(term, Axis)]
    space = next((axis for axis in axes if not axis.reduce), None)
    tap = next((axis for axis in axes if axis.reduce), None)
    if space is None or tap is None or not 2 <= tap.extent <= MAX_TAPS:
        return None
    elsewhere = [free_vars(index) for d, index in enumerate(data.indices) if d != dim]
    in_filter = [free_vars(index) for index in filter_.indices]
    filter_dims = [d for d, axes_ in enumerate(in_filter) if tap in axes_]
    if any(space in axes_ or tap in axes_ for axes_ in elsewhere) or any(space in axes_ for axes_ in in_filter):
        return None
    if len(filter_dims) != 1 or filter_.indices[filter_dims[0]] is not tap:
        return None
    return WindowAxes(space, tap, dim, filter_dims[0], form.constant)
