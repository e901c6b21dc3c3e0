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

from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Binary, Const, Expr, Reduce, as_expr
from ansorlite.te.intervals import Linear, bounds, linear
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
        if (division := _division(node)) is not None:
            form, _, divisor = division
            match list(form.terms.items()):
                case [(Axis() as axis, 1)]:
                    yield axis, (divisor, form.constant)


def _division(node: Expr) -> tuple[Linear, BinaryOp, int] | None:
    """Dividend, operator and divisor, if the node is an index's quotient or remainder by more than 1."""
    match node:
        case Binary(BinaryOp.FLOORDIV | BinaryOp.MOD as op, a, Const(divisor), dtypes.INDEX) if divisor > 1:
            return linear(a), op, int(divisor)
        case _:
            return None


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
        if (division := _division(node)) is None:
            return values.get(node)
        form, op, divisor = division
        multiples = {term: c // divisor for term, c in form.terms.items() if c % divisor == 0}
        rest = _sum({term: c for term, c in form.terms.items() if c % divisor}, form.constant)
        least, greatest = bounds(rest)
        if math.isinf(least) or math.isinf(greatest) or least // divisor != greatest // divisor:
            return None
        quotient = int(least // divisor)
        return _sum(multiples, quotient) if op is BinaryOp.FLOORDIV else rest - quotient * divisor

    return rewrite(body, rule)


def _sum(terms: Mapping[Expr, int], constant: int) -> Expr:
    total = as_expr(constant)
    for term, coefficient in terms.items():
        total = total + term * coefficient
    return total
