"""Axes that are read by quotient and remainder become two digits each, in which such reads are affine.

A grouped convolution reads its channels at ``co // share``, a transposed one its taps at ``(y + 1) % stride``. Where ``co`` is
``share * high + low``, the first depends on ``high`` alone. ``y`` is made digits between the first and the last multiple of the
stride; the few places before and after are parts of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansorlite.te.expr import Axis, Expr, Reduce
from ansorlite.te.index.form import Affine, division, form_of
from ansorlite.te.index.ranges import bounds, quotient
from ansorlite.te.ops import BinaryOp
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import rewrite, walk


@dataclass(frozen=True)
class Part:
    """A part of a compute, as a compute of its own.

    Attributes:
        tensor: has the elements of the part, in the same order over more dimensions.
        region: where they lie in the whole.
    """

    tensor: Tensor
    region: tuple[slice, ...]


@dataclass(frozen=True)
class _Range:
    """A range of an axis, as ``begin + axes[0] * axes[1].extent + axes[1]``, or ``begin + axes[0]`` if there is but one."""

    begin: int
    axes: tuple[Axis, ...]

    @property
    def value(self) -> Expr:
        place: Expr = self.axes[0]
        for digit in self.axes[1:]:
            place = place * digit.extent + digit
        return place + self.begin if self.begin else place

    @property
    def region(self) -> slice:
        return slice(self.begin, self.begin + math.prod(axis.extent for axis in self.axes))


def parts(tensor: Tensor) -> Iterator[Part]:
    """The parts that a reduction falls into; of what divides no axis, that is the whole.

    Reduce axes stay whole: one whose extent or offset its divisor does not divide is left as it is.
    """
    body = tensor.body
    divisions = dict(_divisions(body)) if isinstance(body, Reduce) else {}
    if not isinstance(body, Reduce) or not divisions:
        yield Part(tensor, (slice(None),) * tensor.ndim)
        return
    folded = [ranges[0] if len(ranges := _ranges(axis, divisions)) == 1 else _Range(0, (axis,)) for axis in body.axes]
    for space in itertools.product(*(_ranges(axis, divisions) for axis in tensor.axes)):
        values: dict[Expr, Expr] = {
            axis: each.value for axis, each in zip((*tensor.axes, *body.axes), (*space, *folded), strict=True)
        }
        axes, reduced = (tuple(axis for each in some for axis in each.axes) for some in (space, folded))
        element = Reduce(body.op, _with(values, body.body), reduced, body.dtype)
        shape = tuple(axis.extent for axis in axes)
        yield Part(Tensor(tensor.name, shape, tensor.dtype, axes, element), tuple(each.region for each in space))


def _divisions(body: Expr) -> Iterator[tuple[Axis, tuple[int, int]]]:
    """``(divisor, offset)`` of each axis that there is a quotient or remainder of, the offset added."""
    for node in walk(body):
        if (found := division(node)) is not None:
            _, dividend, divisor = found
            form = form_of(dividend)
            match form.terms:
                case ((Axis() as axis, 1),) if divisor > 1:
                    yield axis, (divisor, form.constant)


def _ranges(axis: Axis, divisions: Mapping[Axis, tuple[int, int]]) -> tuple[_Range, ...]:
    if axis not in divisions:
        return (_Range(0, (axis,)),)
    divisor, offset = divisions[axis]
    first = min(-offset % divisor, axis.extent)
    count = (axis.extent - first) // divisor
    last = first + count * divisor
    ranges = []
    if first:
        ranges.append(_Range(0, (_digit(axis, first),)))
    if count:
        ranges.append(_Range(first, (_digit(axis, count), _digit(axis, divisor))))
    if last < axis.extent:
        ranges.append(_Range(last, (_digit(axis, axis.extent - last),)))
    return tuple(ranges)


def _digit(axis: Axis, extent: int) -> Axis:
    return Axis(axis.name, extent=extent, reduce=axis.reduce)


def _with(values: Mapping[Expr, Expr], body: Expr) -> Expr:
    """``body`` with its axes replaced, and the quotients and remainders evaluated of what that makes linear."""

    def rule(node: Expr) -> Expr | None:
        if (found := division(node)) is None:
            return values.get(node)
        op, dividend, divisor = found
        whole, rest = form_of(dividend).divided(divisor)
        least, greatest = quotient(bounds(rest.expr()), divisor)
        if least != greatest or math.isinf(least):
            return None
        known = Affine((), int(least))
        return whole.plus(known).expr() if op is BinaryOp.FLOORDIV else rest.plus(known, -divisor).expr()

    return rewrite(body, rule)
