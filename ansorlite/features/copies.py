"""The statements that make packed copies, and where these are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansorlite.analysis.access import accesses
from ansorlite.columns.arithmetic import both, either, largest, total, where
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.loops_around import Loops
from ansorlite.features.neighbours import location_of, with_neighbours
from ansorlite.features.nest_view import NestView, distinct, facts_of
from ansorlite.schedule.nest import CopyLoop, Packed
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis


def copy_facts(view: NestView, pack: Packed) -> StatementFacts:
    """A packed copy runs in the loops before its place, then in loops of its own."""
    walked, dims = view.nest.loops, frozenset(pack.copy.axes)
    own = [loop for loop in pack.loops if any(largest(walked[position].trip) > 1 for position, _ in loop.parts)]
    further = 0 if view.around is None else len(view.around.trips)
    trips, parallel = list(view.trips[:further]), list(view.parallel[:further])
    unrolled = [both(flag, trip > 1) for flag, trip in zip(view.unrolled, trips, strict=False)]
    straight = dict(zip(view.loops, view.straight(view.outside(pack.at)), strict=True))
    sizes = {axis: list(view.sizes[axis][: further + 1]) for axis in pack.copy.axes}
    steps = list(view.steps[:further])
    for loop in own:
        position = loop.parts[0][0]
        around = 0 if loop.moved else walked[position].band < pack.at
        trips.append(where(around, walked[position].trip, loop.trip))
        parallel.append(where(around, position < view.nest.parallel, loop.parallel))
        unrolled.append(both(where(around, straight.get(walked[position], 0), loop.unrolled), trips[-1] > 1))
        left = {axis: found[-1] for axis, found in sizes.items()}
        step: dict[Axis, tuple[Number, Number | None]] = {}
        for position, here in loop.parts:
            axis = walked[position].axis
            if axis in view.nest.mixed:
                step[axis] = where(either(here, around), walked[position].step, step[axis][0] if axis in step else 0), None
            if axis in dims:
                # One of a single iteration may stay where one outside of it is moved.
                walks = both(either(here, around), here == 1 or walked[position].trip > 1)
                left[axis] = where(walks, view.nest.left(position), left[axis])
                if axis not in view.nest.mixed and walked[position].name not in view.nest.cut:
                    by, span = step.get(axis, (walked[position].step, walked[position].span))
                    assert span is not None
                    step[axis] = where(walks, walked[position].step, by), where(walks, walked[position].span, span)
        for axis, by_depth in sizes.items():
            by_depth.append(left[axis])
        steps.append(step)
    none: Numbers = [0] * further
    vector = [*none, *(both(loop.lanes > 1, trip > 1) for loop, trip in zip(own, trips[further:], strict=True))]
    lanes: Number = 1
    for loop, flag in zip(own, vector[further:], strict=True):
        lanes = where(flag, loop.lanes, lanes)
    by_loop = (frozenset(walked[position].axis for position, _ in loop.parts) & dims for loop in own)
    axes = (*(walk & dims for walk in view.walks[:further]), *by_loop)
    kinds = (trips, parallel, unrolled, vector, [0] * len(trips))
    fused = [*view.fused[:further], *(None if loop.moved else walked[loop.parts[0][0]].fused for loop in own)]
    loops = Loops(_numbers(view, own, further), *kinds, axes, sizes, lanes, steps, fused)
    element, lane = distinct(pack.copy), walked[-1].axis if walked and walked[-1].axis in dims else None
    found = [view.read_facts(access, loops, lane=lane) for access in accesses(element)]
    found = [
        replace(
            facts,
            lane_stride=where(pack.transposed, 1, facts.lane_stride),
            lane_step=where(pack.transposed, 0, facts.lane_step),
        )
        for facts in found
    ]
    all_ = (*with_neighbours(found, list(map(location_of, accesses(element)))), _stored(view, pack, own, loops, further))
    return facts_of(pack.copy.name, element, loops, 0, False, all_)


def _numbers(view: NestView, own: Sequence[CopyLoop], further: int) -> Sequence[int]:
    """Which loops of the nest those of a packed copy are; one that is moved is where the next one is."""
    number = {loop.name: number for number, loop in enumerate(view.loops) if number >= further}
    result: list[int] = []
    for loop in reversed(own):
        if not loop.moved:
            result.append(number[view.nest.loops[loop.parts[0][0]].name])
        elif result:
            result.append(result[-1])
    return [*range(further), *reversed(result)]


def _stored(view: NestView, pack: Packed, own: Sequence[CopyLoop], loops: Loops, further: int) -> AccessFacts:
    """Where a packed copy is stored: a dimension is a loop of the nest, whichever loop walks it.

    ``further`` loops are around the nest.
    """
    walkers: dict[int, list[tuple[int, Number]]] = {}
    for depth, copying in enumerate(own, further):
        for position, here in copying.parts:
            walkers.setdefault(position, []).append((depth, here))
    dims = frozenset(pack.copy.axes)
    extents: list[Number] = []
    widths: list[Numbers] = []
    behind: list[Number] = [0]
    moved: list[Number] = [0] * len(loops.trips)
    for position, by in sorted(walkers.items()):
        loop = view.nest.loops[position]
        if loop.axis not in dims:
            continue
        trip = where(loop.band >= pack.at, loop.trip, 1)
        below = [total(here for walker, here in by if walker >= depth) for depth in range(len(loops.trips) + 1)]
        widths.append([where(flag, trip, 1) for flag in below])
        extents.append(trip)
        behind.append(pack.pads.get(loop.name, 0))
        for depth, here in by:
            moved[depth] = either(moved[depth], both(here, trip > 1))
    stride = where(loops.lanes > 1, where(pack.transposed, 2, 1), 0)
    item = dtypes.size(pack.tensor.dtype)
    pads = tuple(behind[: len(extents)]) if pack.pads else ()
    renewed = view.renewed(view.outside(pack.at), loops)
    return AccessFacts(tuple(widths), tuple(extents), item, moved, stride, True, renewed, pads)
