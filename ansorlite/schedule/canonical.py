"""The normal form of a program: equal numbers mean one and the same program."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.analysis.access import positions
from ansorlite.columns.arithmetic import both, either, equal, every, negated, select, where
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import BINDINGS
from ansorlite.schedule.nest import Nest, Packed, Program
from ansorlite.schedule.refs import LoopRef


def canonical(program: Program) -> list[Number]:
    """The program's numbers. Loops of one iteration vanish, and places are counted in the loops that are left."""
    pads = [pad for of in program.pads.values() for pad in of]
    pads += [pad for each in program.nests for nest in each.all for pack in nest.packed for pad in pack.pads.values()]
    return [number for nest in program.nests for number in _nest(nest)] + pads + list(program.swizzles.values())


def _nest(nest: Nest) -> list[Number]:
    real = [loop.trip > 1 for loop in nest.loops]
    before: list[Number] = [0]
    for flag in real:
        before.append(before[-1] + flag)
    number = positions(nest.anchor)
    # With the steps of the loops so far, a step tells the iterations, too.
    axes = 2 * len(number)
    values = [loop.step * axes + (2 * number[loop.axis] + loop.unrolled) for loop in nest.loops]
    result = _in_front(real, [1 + value for value in values])
    if any(loop.bound is not None for loop in nest.loops):
        bindings = [0 if loop.bound is None else 1 + BINDINGS.index(loop.bound) for loop in nest.loops]
        # Of an axis in several loops the one that is left may be bound or not.
        result += _in_front(real, bindings)
    if any(loop.fused is not None for loop in nest.loops):
        result += _in_front(real, _joined(nest))
    starts = [before[nest.band_start(band)] for band in range(len(nest.bands) + 1)]

    def place(bands: Number) -> Number:
        return select(starts, bands)

    result += [select(before, nest.parallel), nest.lanes, place(nest.epilogue_at), nest.streamed]
    # Which loops the promoted accumulators are around cannot be told from the loops when nothing walks the tile in between.
    result.append(where(nest.apart, 1 + place(nest.inner_reduction or 0), 0))
    if nest.starts:
        result.append(place(_started(nest)))
    for stage in nest.attached:
        result += [where(equal(stage.at, 0), 0, 1 + place(stage.at)), stage.lanes, stage.parallel]
        if stage.nest is not None:
            result += _nest(stage.nest)
    if nest.ring is not None:
        result.append(nest.ring.stages)
    result += [where(nest.loops[each.loop].trip > 1, each.distance, 0) for each in nest.fetched]
    result += [where(equal(pack.at, 0), 0, 1 + place(pack.at)) for pack in nest.packed]
    for pack in nest.packed:
        result += [*_in_front(real, _copying(nest, pack)), pack.transposed]
    return result


def _copying(nest: Nest, pack: Packed) -> list[Number]:
    """By loop of the nest, how a copy walks it: that depends on which of an axis's loops it is, which else cannot be told."""
    marks: list[Number] = [0] * len(nest.loops)
    walked: dict[LoopRef, Number] = {}
    for loop in pack.loops:
        mark = int(loop.moved) + 2 * loop.parallel + 4 * loop.unrolled
        fused = None if loop.moved else nest.loops[loop.parts[0][0]].fused
        if fused is not None:
            mark = mark + 8 * both(walked.get(fused, 0), negated(loop.parallel))
            walked[fused] = either(walked.get(fused, 0), loop.trip > 1)
        for position, here in loop.parts:
            real = every((here, loop.trip > 1, nest.loops[position].trip > 1))
            marks[position] = marks[position] + where(real, mark, 0)
    return marks


def _joined(nest: Nest) -> list[Number]:
    """By loop whether it runs as one with the real loop before it; of parallel loops all do."""
    result: list[Number] = []
    for position, loop in enumerate(nest.loops):
        before = [other for other in nest.loops[:position] if loop.fused is not None and other.fused == loop.fused]
        # Where accumulators start at the root, that is in loops that threads do not share.
        apart = 1 if nest.starts else nest.parallel <= position
        result.append(both(negated(every(equal(other.trip, 1) for other in before)), apart))
    return result


def _started(nest: Nest) -> Number:
    """Where accumulators start; those in registers do where these are made, whatever is said further in."""
    band = nest.inner_reduction
    if band is None:
        return nest.reduce_at
    return where(both(nest.promoted, nest.reduce_at >= band), band, nest.reduce_at)


def _in_front(flags: Sequence[Number], values: Sequence[Number]) -> list[Number]:
    """The values whose flags are set in their order, then zeros."""
    result: list[Number] = []
    for flag, value in zip(reversed(flags), reversed(values), strict=True):
        result = [where(flag, yes, no) for yes, no in zip([value, *result], [*result, 0], strict=True)]
    return result
