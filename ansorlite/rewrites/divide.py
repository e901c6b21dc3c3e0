"""Axes that are read by quotient and remainder become two: ``y = d * y_div + y_mod``.

A grouped convolution finds its channels at ``co // share``, a transposed one its taps at ``y % stride``: the region of
such a read is no box that moves with the tiles. Over the two axes it is one. The new dimensions lie side by side, so
the memory stays what it was, and an output of the task is merely seen in another shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ansorlite.analysis.access import axes_of
from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.loops.nodes import index
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Const, Expr, Read, Reduce, Select, binary
from ansorlite.te.index.affine import affine
from ansorlite.te.index.ranges import bounds
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp
from ansorlite.te.reductions import identity
from ansorlite.te.rewriting import unused
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, rewrite, substitute, walk


@dataclass(frozen=True)
class Division:
    """One axis of a compute that is to become two; ``divisor`` is the extent of the inner one."""

    tensor: Tensor
    axis: Axis
    divisor: int


def divisible_axes(dag: ComputeDAG) -> Iterator[Division]:
    """The axes that are to be divided: those of stages that reuse data, in a quotient or remainder of their own."""
    for tensor in dag.computes:
        if has_data_reuse(tensor):
            assert tensor.body is not None
            for node in walk(tensor.body):
                axis, divisor = _quotient_of_an_axis(node)
                if axis is not None and 1 < divisor < axis.extent:
                    yield Division(tensor, axis, divisor)


def _quotient_of_an_axis(node: Expr) -> tuple[Axis | None, int]:
    """``(axis, d)`` if the node is ``(axis + constant) // d`` or ``% d``, with either sign."""
    if isinstance(node, Binary) and node.op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and isinstance(node.b, Const):
        form = affine(node.a)
        if form is not None and len(form.terms) == 1:
            ((term, coefficient),) = form.terms
            if isinstance(term, Axis) and abs(coefficient) == 1:
                return term, int(node.b.value)
    return None, 0


def divide(dag: ComputeDAG, division: Division) -> ComputeDAG:
    """The computation with one axis made two, in its stage and in the stages that walk it in step::

        C[i] = sum(A[i // 4, k] * B[i, k])      ->      C[i_div, i_mod] = sum(A[i_div, k] * B[i_div * 4 + i_mod, k])

    Where the divisor does not divide the extent, the last steps are computed in vain. What they read past the end of an
    element-wise stage of their own is zeros that it is given; other such reads are guarded. An output is a copy in the old
    shape.
    """
    axes = {division.tensor: division.axis}
    if not division.axis.reduce and division.axis.extent % division.divisor == 0:
        axes = _walked_in_step(dag, division)
    new: dict[Tensor, Tensor] = {}
    for tensor in dag.tensors:
        only = {t for t in dag.producers(tensor) if dag.consumers(t) == (tensor,) and t not in dag.outputs}
        new[tensor] = _divided(tensor, axes, division.divisor, new, only)
    returned = [_in_old_shape(new[t], t, axes[t], division.divisor) if t in axes else new[t] for t in dag.outputs]
    return ComputeDAG.of([*(new[t] for t in dag.inputs), *returned])


def _walked_in_step(dag: ComputeDAG, division: Division) -> dict[Tensor, Axis]:
    """The axis of each stage that is one and the same walk: that of the division, and of the element-wise stages after it."""
    found = {division.tensor: division.axis}
    for tensor in dag.computes:
        if tensor in found or tensor.reduce_axes:
            continue
        assert tensor.body is not None
        walks = {read.indices[_dimension(read.tensor, found[read.tensor])] for read in reads(tensor.body) if read.tensor in found}
        if len(walks) == 1:
            (walk_,) = walks
            own = next((axis for axis in tensor.axes if axis is walk_ and axis.extent == division.axis.extent), None)
            if own is not None:
                found[tensor] = own
    return found


def _dimension(tensor: Tensor, axis: Axis) -> int:
    return next(d for d, own in enumerate(tensor.axes) if own is axis)


def _divided(
    tensor: Tensor, axes: Mapping[Tensor, Axis], divisor: int, new: Mapping[Tensor, Tensor], only: Collection[Tensor]
) -> Tensor:
    """``tensor`` reading the ``new`` tensors, and with its axis divided if it has one in ``axes``; ``only`` it reads some."""

    def redirect(node: Expr) -> Expr | None:
        if not isinstance(node, Read) or new[node.tensor] is node.tensor:
            return None
        indices = list(node.indices)
        axis = axes.get(node.tensor)
        if axis is not None and not axis.reduce:
            d = _dimension(node.tensor, axis)
            indices[d : d + 1] = [indices[d] // divisor, indices[d] % divisor]
        return Read(new[node.tensor], tuple(indices), node.dtype)

    if tensor.body is None:
        return tensor
    body = rewrite(tensor.body, redirect)
    axis = axes.get(tensor)
    if axis is None and body is tensor.body:
        return tensor
    pair: tuple[Axis, ...] = ()
    own = tensor.axes
    if axis is not None:
        pair = _pair(axis, divisor, {a.name for a in axes_of(tensor)})
        own = tuple(a for old in tensor.axes for a in (pair if old is axis else (old,)))
        body = _over_pair(body, axis, pair, divisor, {new[t] for t in only})
    body = simplified(body, own)
    return Tensor(tensor.name, tuple(a.extent for a in own), tensor.dtype, own, body)


def _pair(axis: Axis, divisor: int, taken: set[str]) -> tuple[Axis, Axis]:
    extents = {"div": -(-axis.extent // divisor), "mod": divisor}
    div, mod = (Axis(unused(f"{axis.name}_{kind}", taken), extent=e, reduce=axis.reduce) for kind, e in extents.items())
    return div, mod


def _over_pair(body: Expr, axis: Axis, pair: tuple[Axis, ...], divisor: int, own: Collection[Tensor]) -> Expr:
    """``body`` with ``pair`` in the place of ``axis``, guarded where it would leave a tensor past the axis' end."""
    value: Expr = pair[0] * divisor + pair[1]
    terms = body.body if isinstance(body, Reduce) else body
    inner = substitute(terms, {axis: value})
    if axis.extent % divisor and not axis.reduce:
        inner = simplified(_longer_producers(inner, own), ())
    if axis.extent % divisor and (axis.reduce or not _stays_within(inner, pair[0])):
        neutral = identity(body.op, body.dtype) if isinstance(body, Reduce) else Const(0, body.dtype)
        inner = Select(binary(BinaryOp.LT, value, axis.extent), inner, neutral, inner.dtype)
    if not isinstance(body, Reduce):
        return inner
    return Reduce(body.op, inner, tuple(a for old in body.axes for a in (pair if old is axis else (old,))), body.dtype)


def _longer_producers(body: Expr, own: Collection[Tensor]) -> Expr:
    """``body`` reading element-wise stages of its own that go on, with zeros, as far as it reads past their ends."""
    longer: dict[Tensor, Tensor] = {}
    for tensor in own:
        if tensor.body is None or tensor.reduce_axes:
            continue
        extents = list(tensor.shape)
        for read in reads(body):
            if read.tensor is tensor and all(affine(index_) is not None for index_ in read.indices):
                extents = [max(e, int(bounds(index_)[1]) + 1) for e, index_ in zip(extents, read.indices, strict=True)]
        if tuple(extents) != tensor.shape:
            longer[tensor] = _prolonged(tensor, tuple(extents))

    def rule(node: Expr) -> Expr | None:
        return Read(longer[node.tensor], node.indices, node.dtype) if isinstance(node, Read) and node.tensor in longer else None

    return rewrite(body, rule)


def _prolonged(tensor: Tensor, extents: tuple[int, ...]) -> Tensor:
    """``tensor`` with zeros after its elements."""
    assert tensor.body is not None
    axes = tuple(Axis(a.name, extent=extent) for a, extent in zip(tensor.axes, extents, strict=True))
    body = substitute(tensor.body, dict(zip(tensor.axes, axes, strict=True)))
    for axis, end in zip(axes, tensor.shape, strict=True):
        if axis.extent > end:
            body = Select(binary(BinaryOp.LT, axis, end), body, Const(0, body.dtype), body.dtype)
    return Tensor(tensor.name, extents, tensor.dtype, axes, simplified(body, axes))


def _stays_within(body: Expr, div: Axis) -> bool:
    """Whether no read leaves its tensor for the sake of steps of ``div`` past the end.

    That is so for an index that is within bounds whatever guards it, and for one that does not depend on ``div``, as long
    as the guards do not either: it is met with the first step too.
    """
    guarded = any(div in free_vars(node.cond) for node in walk(body) if isinstance(node, Select))
    for read in reads(body):
        for index_, extent in zip(read.indices, read.tensor.shape, strict=True):
            low, high = bounds(index_)
            if (low < 0 or high >= extent) and (guarded or div in free_vars(index_)):
                return False
    return True


def simplified(body: Expr, axes: tuple[Axis, ...]) -> Expr:
    """``body`` with its index arithmetic and conditions in their simplest form. Axes of one element stay where they are."""
    algebra = IndexAlgebra()
    for axis in dict.fromkeys((*axes, *(node for node in walk(body) if isinstance(node, Axis)))):
        algebra.bind(axis, index(max(axis.extent, 2)))
    return algebra.simplify(body)


def _in_old_shape(tensor: Tensor, old: Tensor, axis: Axis, divisor: int) -> Tensor:
    """``tensor``, or a copy where its elements are not those of ``old`` in a row."""
    if axis.reduce or axis.extent % divisor == 0:
        return tensor
    fresh = {a: Axis(a.name, extent=a.extent) for a in old.axes}
    indices: list[Expr] = []
    for a in old.axes:
        indices += [fresh[a] // divisor, fresh[a] % divisor] if a is axis else [fresh[a]]
    return Tensor(f"{old.name}_whole", old.shape, old.dtype, tuple(fresh.values()), Read(tensor, tuple(indices), old.dtype))
