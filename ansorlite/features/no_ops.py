"""Which share of a reduction's steps runs: those that change nothing are left out where loops allow it (``schedule/no_ops.py``).

A condition is a form over two axes, a row of outputs and a tap. The loops inside of one that leaves out iterations walk so many
rows and taps together: of such blocks of rows those are counted, tap by tap, in which the form is negative throughout. What loops
walk twice, as their last tiles are shifted inwards, is not at an end: where one block at each end is left out, the count is
exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.analysis.no_ops import needed
from ansorlite.columns.arithmetic import (
    both,
    ceil,
    either,
    every,
    floor,
    largest,
    maximum,
    minimum,
    modulo,
    negated,
    product,
    some,
    total,
    where,
)
from ansorlite.columns.tape import Number
from ansorlite.schedule.nest import Loop, Nest
from ansorlite.schedule.no_ops import LEAST_SHARE, around_tile, leaves_out
from ansorlite.te.expr import Axis
from ansorlite.te.index.form import Affine

#: Where there are more taps than these, so many are looked at, evenly spread.
_LOOKED_AT: Final = 16


@dataclass(frozen=True, eq=False)
class _Tap:
    """One element of a reduction's axis.

    Attributes:
        digits: the iteration of each loop over the axis, outermost first.
        there: whether there are so many.
    """

    digits: Sequence[Number]
    there: Number


@dataclass(frozen=True, eq=False)
class OuterLoop:
    """A loop around a region, whose corner it moves.

    Attributes:
        axes: of the region's stage, that it moves along.
    """

    axes: frozenset[Axis]
    trip: Number
    unrolled: Number


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What is left out of a nest's reduction.

    Attributes:
        needed: the share of its steps that run.
        computed: by loop: whether its ends are computed: then it is no straight-line code, even where it is to be written out.
    """

    needed: Number
    computed: Mapping[Loop, Number]


def left_out(nest: Nest, outer: Sequence[OuterLoop] = ()) -> LeftOut:
    """What loops of a nest leave out; ``outer``: those around it, if it computes a region."""
    if not leaves_out(nest):
        return LeftOut(1, {})
    groups: dict[Axis, dict[Axis, list[Affine]]] = {}
    for form in needed(nest.anchor):
        axes = sorted((axis for axis, _ in form.terms if isinstance(axis, Axis)), key=lambda axis: (not axis.reduce, axis.extent))
        if len(axes) == 2:
            groups.setdefault(axes[0], {}).setdefault(axes[1], []).append(form)
    shares: list[Number] = []
    computed: dict[Loop, Number] = {}
    for axis, by_rows in groups.items():
        taps = _taps(nest, axis)
        kept: list[Number] = [1] * len(taps)
        for rows, forms in by_rows.items():
            around = [loop for loop in outer if rows in loop.axes]
            left, ends = _left_out(nest, around, rows, axis, forms, taps)
            kept = [each * (1 - out) for each, out in zip(kept, left, strict=True)]
            computed |= {loop: either(computed.get(loop, 0), here) for loop, here in ends.items()}
        run = total(where(tap.there, each, 0) for tap, each in zip(taps, kept, strict=True))
        shares.append(run / total(tap.there for tap in taps))
    return LeftOut(product(shares), computed)


def _taps(nest: Nest, axis: Axis) -> list[_Tap]:
    loops = [loop for loop in nest.loops if loop.axis is axis]
    count = product(loop.trip for loop in loops)
    most = int(largest(count))
    if len(loops) == 2:
        # However one is cut into two, as 7 into 2 times 6.
        most = min(most, max(2 * int(largest(nest.extents[axis])) - 2, 1))
    few = count <= _LOOKED_AT if most > _LOOKED_AT else 1
    numbers: list[tuple[Number, Number]] = []
    for number in range(min(most, _LOOKED_AT)):
        spread = floor(count * ((number + 0.5) / _LOOKED_AT)) if most > _LOOKED_AT else number
        numbers.append((where(few, number, spread), where(few, number < count, 1)))
    taps, guarded = [], any(loop.guard is not None for loop in loops)
    for rest, there in numbers:
        digits: list[Number] = []
        for loop in reversed(loops):
            digits.insert(0, modulo(rest, loop.trip))
            rest = floor(rest / loop.trip)
        # A loop that is cut short may have nothing left; what runs under a condition goes on.
        whole = 1 if guarded else _place(nest, loops, digits) < nest.extents[axis]
        taps.append(_Tap(digits, both(there, whole)))
    return taps


def _place(nest: Nest, loops: Sequence[Loop], digits: Sequence[Number]) -> Number:
    plain = [(loop, digit * loop.step) for loop, digit in zip(loops, digits, strict=True)]
    return total(at if loop.name in nest.cut else minimum(at, loop.span - loop.step) for loop, at in plain)


def _left_out(
    nest: Nest, outer: Sequence[OuterLoop], rows: Axis, axis: Axis, forms: Sequence[Affine], taps: Sequence[_Tap]
) -> tuple[list[Number], dict[Loop, Number]]:
    """By tap the share of rows that are left out as a form is negative, and by loop whether its ends are computed for that.

    Args:
        outer: the loops around the nest that move its region along the rows. All regions together have all rows; some have rows
            of their neighbours, which are at no end.
    """
    axes = (rows, axis)
    over = {a: [loop for loop in nest.loops if loop.axis is a] for a in axes}
    extent = rows.extent if outer else nest.extents[rows]
    fixed = every(loop.trip <= 1 for loop in outer)
    moved = some(both(loop.trip > 1, negated(loop.unrolled)) for loop in outer)
    in_tile: Number = 0
    found: Number = 0
    around: dict[Loop, Number] = {}
    computed: dict[Loop, Number] = {}
    for position, loop in reversed(list(enumerate(nest.loops))):
        if loop.axis in axes:
            known = both(fixed, _known(nest, position, axes))
            here = every((loop.trip > 1, negated(_vector(nest, loop)), either(known, around_tile(nest, loop.band))))
            before = (each for each in nest.loops[:position] if each.axis in axes)
            variable = some((moved, *(both(each.trip > 1, negated(each.unrolled)) for each in before)))
            # Of the innermost loop that leaves out steps code does not know the ends, as they depend on a loop outside of it.
            computed[loop] = every((here, negated(found), negated(known), variable))
            in_tile, found = either(in_tile, both(here, known)), either(found, here)
            around[loop] = found
    walked = {a: total(where(around[loop], 0, (loop.trip - 1) * loop.step) for loop in over[a]) for a in axes}
    blocks = product([*(loop.trip for loop in outer), *(where(around[loop], loop.trip, 1) for loop in over[rows])])
    if any(loop.name in nest.cut and loop.guard is None for loop in over[rows]):
        # What is cut short has no rows twice, nor beyond the end.
        blocks = minimum(blocks, ceil(extent / (walked[rows] + 1)))
    result: list[Number] = []
    for tap in taps:
        begin = _place(nest, over[axis], [where(around[loop], at, 0) for loop, at in zip(over[axis], tap.digits, strict=True)])
        negative: Number = 0
        for form in forms:
            a, r = form.coefficients[rows], form.coefficients[axis]
            # From the end at which it is negative, the form rises from row to row.
            first = form.constant + min(a, 0) * (extent - 1) + begin * r + max(r, 0) * walked[axis]
            count = ceil((0 - first - abs(a) * walked[rows]) / (abs(a) * (walked[rows] + 1)))
            negative = negative + minimum(maximum(count, 0), blocks)
        result.append(where(tap.there, minimum(negative / blocks, 1), 0))
    share = total(result) / total(tap.there for tap in taps)
    runs = every((found, either(in_tile, share > LEAST_SHARE)))
    return [where(runs, each, 0) for each in result], {loop: both(runs, here) for loop, here in computed.items()}


def _known(nest: Nest, position: int, axes: Sequence[Axis]) -> Number:
    """Whether a loop is over a register tile, and code knows where it and all loops around it stand on ``axes``."""
    if nest.loops[position].band < nest.last_space:
        return 0
    around = (loop for loop in nest.loops[: position + 1] if loop.axis in axes)
    return every((nest.promoted, *(either(loop.trip <= 1, both(loop.unrolled, negated(_vector(nest, loop)))) for loop in around)))


def _vector(nest: Nest, loop: Loop) -> Number:
    return nest.vector if loop is nest.loops[-1] else 0
