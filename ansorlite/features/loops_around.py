"""The loops around a statement, and how what it reads and writes moves along them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ansorlite.alignment import CACHE_LINE
from ansorlite.columns.arithmetic import along, both, equal, every, minimum, modulo, negated, some
from ansorlite.columns.tape import Number
from ansorlite.features.facts import Numbers
from ansorlite.schedule.nest import Attached, Loop
from ansorlite.schedule.refs import LoopRef
from ansorlite.te.expr import Axis
from ansorlite.te.index.form import Affine
from ansorlite.te.index.strides import moves, reached, width
from ansorlite.te.tensor import Tensor

#: By axis how far an iteration of a loop moves, and the span that its last one is shifted into; ``None`` where that is not.
Steps: TypeAlias = Mapping[Axis, tuple[Number, Number | None]]


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops around a statement, the axes that each walks, and by depth how much of each axis is left below.

    Attributes:
        numbers: by loop, the outermost first, as far as they are those of the nest: which of these each is.
        steps: by loop, for axes: how far it moves; without an entry, as far as what is left below.
        fused: by loop: the fused loop that it is a part of.
    """

    numbers: Sequence[int]
    trips: Numbers
    parallel: Numbers
    unrolled: Numbers
    vector: Numbers
    reduce: Numbers
    axes: tuple[frozenset[Axis], ...]
    sizes: Mapping[Axis, Numbers]
    lanes: Number
    steps: Sequence[Steps]
    fused: Sequence[LoopRef | None]


@dataclass(frozen=True, eq=False)
class Around:
    """The loops around the region of a stage, as its own nest sees them.

    Attributes:
        trips, parallel, unrolled, steps, fused: by loop.
        walks: by loop: which of the stage's axes the region moves along.
        sizes: of the stage's axes, by depth.
        places: of the regions that can be read there: the stage, and by loop whether it is around the region's place.
        teams: parallel loops around it, as :class:`StatementFacts` has them.
    """

    trips: Numbers
    parallel: Numbers
    unrolled: Numbers
    steps: Sequence[Steps]
    fused: Sequence[LoopRef | None]
    walks: Sequence[frozenset[Axis]]
    sizes: Mapping[Axis, Numbers]
    places: Mapping[Tensor, tuple[Attached, Numbers]]
    teams: Mapping[Hashable, Number]


def loop_around(trip: Number) -> Loop:
    """A loop around a nest, as one of a band before its first; it has no name there."""
    return Loop("", Axis("around", extent=1), 0, -1, False, 1, 1, trip, 0)


def how_wide(form: Affine, sizes: Mapping[Axis, Numbers], depths: int, extent: Number) -> list[Number]:
    """By depth how many values a form takes, at most ``extent``."""
    used = [axis for axis in sizes if axis in form.variables]
    return by_depth(lambda left: minimum(width(form, left), extent), sizes, used, depths)


def by_depth(
    function: Callable[[Mapping[Axis, Number]], Number], sizes: Mapping[Axis, Numbers], axes: Sequence[Axis], depths: int
) -> list[Number]:
    """``function`` of how much of ``axes`` is left."""
    if not axes:
        return [function({})] * depths
    return along(lambda *left: function(dict(zip(axes, left, strict=True))), *(sizes[axis] for axis in axes))


def changes(form: Affine, walked: Iterable[Axis], loops: Loops, depth: int) -> Number:
    """Whether the form changes over the iterations of a loop that walks some of its axes, every other loop at its start."""
    return moves(form, {axis: _steps(axis, loops, depth) for axis in walked})


def first_step(form: Affine, walked: Iterable[Axis], loops: Loops, depth: int) -> Number:
    """How far the form moves from the first iteration of a loop to the second, every other loop at its start."""
    return reached(form, {axis: minimum(*_steps(axis, loops, depth)) for axis in walked if axis in form.variables})


def _steps(axis: Axis, loops: Loops, depth: int) -> tuple[Number, Number]:
    """How far a loop's iteration moves an axis, and how far its last iteration stands from its first."""
    step, span = loops.steps[depth].get(axis, (loops.sizes[axis][depth + 1], None))
    last = (loops.trips[depth] - 1) * step
    return step, last if span is None else minimum(last, span - step)


def is_unaligned(second: Numbers, item: int, loops: Loops, moved: Numbers, renewed: Numbers) -> Number:
    """Whether a loop other than the lanes' moves an access by elements that are no whole vectors or cache lines.

    ``second``: by loop, elements from its first iteration to its second. A buffer of each iteration's own begins where a line
    does, but for boxes that are shifted inwards.
    """
    whole = minimum(loops.lanes, max(CACHE_LINE // item, 1))
    found = (
        every((flag, negated(vector), negated(own), negated(equal(modulo(by, whole), 0))))
        for flag, own, vector, by in zip(moved, renewed, loops.vector, second, strict=True)
    )
    return both(loops.lanes > 1, some(found))
