"""Where a loop of a reduction has iterations that change nothing.

A convolution of 7 x 7 outputs with 3 x 3 taps, one row of outputs after another::

    for h in 0..7:
        for rh in 0..3:
            if h + rh - 1 >= 0 and 7 - h - rh >= 0:        a tenth of the iterations multiplies zeros
                ...

What the loops inside of it walk together is left out only where none of it is needed. Where a register tile has whole rows, and
the taps of a row are written out as well, each of its steps is there for those of its elements that need it::

    unrolled rw in 0..3:
        unrolled w in 0..7:
            if w + rw - 1 >= 0 and 7 - w - rw >= 0:            known where code is made, and costs nothing
                vectorized(16) o in 0..16:
                    tile[w, o] += ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.analysis.no_ops import needed
from ansorlite.columns.arithmetic import minimum
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import index
from ansorlite.schedule.coordinates import Level
from ansorlite.schedule.nest import Nest
from ansorlite.te.expr import Axis, Expr, Var
from ansorlite.te.index.ranges import Interval, bounds
from ansorlite.te.traversal import free_vars

#: A loop runs under a condition where that leaves out more than this share of its iterations: less is not worth a loop whose ends
#: are computed (docs/decisions/no-ops-of-padding.md).
LEAST_SHARE: Final = 1 / 64
#: What has more steps than these, without those of its longest axis, is not counted, and runs.
_MOST_COUNTED: Final = 1_000_000


def leaves_out(nest: Nest) -> bool:
    """Whether loops of a nest can leave out iterations of its reduction: no other threads wait for them, and no matrix unit does
    them."""
    alone = nest.ring is None and all(loop.bound is None for loop in nest.loops)
    return alone and nest.multiplied is None and nest.inner_reduction is not None


def around_tile(nest: Nest, band: int) -> Number:
    """Whether loops of a band are around the innermost tile, and behind the start of the reduction."""
    first = nest.inner_reduction
    assert first is not None
    return minimum(nest.reduce_at, first) <= band if band < nest.last_space else 0


def may_leave_out(nest: Nest, level: Level) -> bool:
    """Whether iterations of a loop can be left out: it is around the innermost tile, or written out in it."""
    return leaves_out(nest) and level.lanes == 1 and bool(around_tile(nest, level.band) or in_tile(nest, level))


def in_tile(nest: Nest, level: Level) -> bool:
    """Whether a loop is over a register tile."""
    return nest.inner_reduction is not None and level.band >= nest.last_space and level.unrolled and bool(nest.promoted)


def needed_at(
    nest: Nest,
    loop: Level,
    inside: Sequence[Level],
    element: Callable[[Axis], Expr],
    ranges: Mapping[Var, Interval],
    written_out: Set[Var],
) -> list[Expr]:
    """What is negative in iterations of a loop that change nothing; empty where so few do that they may as well run, or where
    code for a register tile cannot know which do.

    Args:
        inside: the loops in it.
        element: where an iteration stands on an axis of the nest's anchor.
        ranges: of the variables in that.
        written_out: those that are constants in code.
    """
    found, share = [], 0.0
    for form in needed(nest.anchor):
        if loop.axis not in form.coefficients:
            continue
        most: Expr = index(form.constant)
        walks = []
        for axis, coefficient in form.terms:
            assert isinstance(axis, Axis)
            walked = sum((level.trip - 1) * level.step for level in inside if level.axis is axis)
            most = most + element(axis) * coefficient + walked * max(coefficient, 0)
            walks.append(_Walk(axis.extent, coefficient, walked))
        if bounds(most, ranges)[0] < 0:
            found.append(most)
            share += _negative(form.constant, walks)
    if in_tile(nest, loop):
        return [most for most in found if free_vars(most) <= written_out]
    return found if share > LEAST_SHARE else []


@dataclass(frozen=True)
class _Walk:
    """What the iterations of a loop and those around it walk of an axis, in steps of which each is walked by loops inside.

    Attributes:
        coefficient: of the axis in a form.
        inside: how far the loops inside walk.
    """

    extent: int
    coefficient: int
    inside: int

    @property
    def steps(self) -> int:
        return max(1, -(-(self.extent - self.inside) // (self.inside + 1)))

    @property
    def values(self) -> NDArray[np.int64]:
        """The most that the axis adds to the form, in each step."""
        starts = np.arange(self.steps) * ((self.inside + 1) * self.coefficient)
        return starts + self.inside * max(self.coefficient, 0)


def _negative(constant: int, walks: Sequence[_Walk]) -> float:
    """In which share of all steps the most of a form is negative."""
    *few, many = sorted(walks, key=lambda walk: walk.steps)
    if prod(walk.steps for walk in few) > _MOST_COUNTED:
        return 0.0
    sums: NDArray[np.int64] = np.array([constant])
    for walk in few:
        sums = np.add.outer(sums, walk.values).ravel()
    return float(np.searchsorted(np.sort(many.values), -sums).mean()) / many.steps
