"""Sums over data with zeros in between, by phases: only the steps that meet data are taken.

A transposed convolution slides its taps over data that has ``s - 1`` zeros after every element. At output ``y`` one tap
in ``s`` meets an element, and which one depends on ``y % s`` alone. (Signal processing calls this the polyphase form of
an upsampling filter.) It is found from a guard of the form ``(c * axis + constant) % s == t`` around a factor of a sum,
there or in the stage that the sum reads, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ansorlite.analysis.no_ops import conjuncts, factors
from ansorlite.rewrites.divide import simplified
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Binary, Const, Expr, Read, Reduce, Select, binary
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine, division
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.rewriting import rebuilt, redirected, with_body
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite, substitute


@dataclass(frozen=True)
class Phases:
    """Steps of a sum that add nothing unless ``(form - offset) % stride == 0``.

    Attributes:
        tensor: the sum.
        axis: its reduce axis to take by phases; it stands in ``form`` with coefficient 1 or -1.
        form: over the sum's axes.
        producer: whose elements are zero elsewhere, and its dimension that ``form`` indexes; ``None`` if the guard is the sum's.
    """

    tensor: Tensor
    axis: Axis
    form: Affine
    stride: int
    offset: int
    producer: tuple[Tensor, int] | None


@dataclass(frozen=True)
class _Guard:
    """``form % divisor == value`` wherever an expression is not zero."""

    form: Affine
    divisor: int
    value: int


def phases(dag: ComputeDAG) -> Iterator[Phases]:
    """The reduce axes to take by phases."""
    for tensor in dag.computes:
        body = tensor.body
        if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM:
            continue
        for factor in factors(body.body):
            for guard in _guards(factor):
                for axis in _steps(guard.form, guard.divisor, body.axes):
                    yield Phases(tensor, axis, guard.form, guard.divisor, guard.value, None)
            if isinstance(factor, Read) and factor.tensor.body is not None:
                yield from _phases_of_producer(tensor, factor, body)


def _phases_of_producer(tensor: Tensor, read: Read, body: Reduce) -> Iterator[Phases]:
    producer = read.tensor
    assert producer.body is not None
    for guard in (guard for factor in factors(producer.body) for guard in _guards(factor)):
        if len(guard.form.terms) != 1:
            continue
        ((term, sign),) = guard.form.terms
        dim = next((d for d, axis in enumerate(producer.axes) if axis is term), None)
        form = None if dim is None else affine(read.indices[dim])
        if dim is None or form is None or abs(sign) != 1:
            continue
        offset = (guard.value - guard.form.constant) * sign % guard.divisor
        if offset < producer.shape[dim]:
            for axis in _steps(form, guard.divisor, body.axes):
                yield Phases(tensor, axis, form, guard.divisor, offset, (producer, dim))


def _steps(form: Affine, stride: int, axes: tuple[Axis, ...]) -> Iterator[Axis]:
    return (axis for axis in axes if abs(form.coefficients.get(axis, 0)) == 1 and axis.extent > 1 < stride)


def _guards(value: Expr) -> Iterator[_Guard]:
    """The remainders that must be right for ``value`` to be other than zero."""
    if not isinstance(value, Select) or not isinstance(value.otherwise, Const) or value.otherwise.value != 0:
        return
    for condition in conjuncts(value.cond):
        if isinstance(condition, Binary) and condition.op is BinaryOp.EQ and isinstance(condition.b, Const):
            form = affine(condition.a)
            if form is not None and len(form.terms) == 1 and not form.constant:
                ((term, coefficient),) = form.terms
                match division(term):
                    case (BinaryOp.MOD, dividend, divisor) if coefficient == 1 and (inner := affine(dividend)) is not None:
                        yield _Guard(inner, divisor, int(condition.b.value))


def take_phases(dag: ComputeDAG, found: Phases) -> ComputeDAG:
    """The sum over the steps that meet data alone::

        D[y] = if_then_else(y % 2 == 0, A[y // 2], 0); C[y] = sum(D[y + k] * W[k], k in 0..4)
            ->      D[y] = A[y]; C[y] = sum(D[y // 2 + k] * W[k * 2 + -y % 2], k in 0..2)

    Where the stride does not divide the axis, the last step is guarded. An infinite weight beside a zero that is no
    longer multiplied leaves no NaN behind.
    """
    axis, stride = found.axis, found.stride
    sign = found.form.coefficients[axis]
    step = Axis(axis.name, extent=-(-axis.extent // stride), reduce=True)
    taken = step * stride + (Affine((), found.offset) + found.form.without(axis).scaled(-1)).scaled(sign).expr() % stride
    dense = None if found.producer is None else _dense(found, found.producer)

    def change(tensor: Tensor, redirect: Callable[[Expr], Expr]) -> Tensor:
        if tensor is not found.tensor:
            return redirected(tensor, redirect)
        assert isinstance(tensor.body, Reduce)
        body = tensor.body.body if dense is None else rewrite(tensor.body.body, lambda node: _dense_read(node, found, dense))
        body = substitute(body, {axis: taken})
        if axis.extent % stride:
            body = Select(binary(BinaryOp.LT, taken, axis.extent), body, Const(0, body.dtype), body.dtype)
        total = Reduce(tensor.body.op, body, tuple(step if old is axis else old for old in tensor.body.axes), body.dtype)
        return with_body(tensor, simplified(total, tensor.axes))

    return rebuilt(dag, change)


def _dense(found: Phases, producer: tuple[Tensor, int]) -> Tensor:
    """The elements of the producer that are not always zero."""
    tensor, dim = producer
    old = tensor.axes[dim]
    fresh = Axis(old.name, extent=-(-(old.extent - found.offset) // found.stride))
    axes = tuple(fresh if axis is old else axis for axis in tensor.axes)
    assert tensor.body is not None
    body = simplified(substitute(tensor.body, {old: fresh * found.stride + found.offset}), axes)
    return Tensor(tensor.name, tuple(axis.extent for axis in axes), tensor.dtype, axes, body)


def _dense_read(node: Expr, found: Phases, dense: Tensor) -> Expr | None:
    """What is read of the dense tensor in the place of a read of its origin."""
    assert found.producer is not None
    tensor, dim = found.producer
    if not isinstance(node, Read) or node.tensor is not tensor or affine(node.indices[dim]) != found.form:
        return None
    indices = list(node.indices)
    indices[dim] = (indices[dim] - found.offset) // found.stride
    return Read(dense, tuple(indices), node.dtype)
