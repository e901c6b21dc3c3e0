"""Fused loops as the loops that they walk the iterations of.

Everything that numbers are made of, footprints, places, last iterations, is said of loops over one axis each. A fused loop is a
run of such loops that the loop IR has as one, ``i_j // 8`` and ``i_j % 8`` in their place. Where it is split again each of its
loops is, so that iterations stay whole runs of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from ansorlite.columns.arithmetic import both, ceil, either, equal, floor, maximum, minimum, modulo, product
from ansorlite.columns.tape import Number
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.structure import Location, Sampled, StageLoops, Started, Structure

_Item = TypeVar("_Item")


def unfused(structure: Structure) -> Structure:
    """The structure with what was said of fused loops said of the loops that they walk; ``fused`` has those that are there."""
    if not any(said.fused for said in structure.stages.values()):
        return structure

    def inside(at: Location) -> Location:
        """A place inside of a fused loop is inside of the innermost of its loops."""
        if isinstance(at, Sampled):
            return replace(at, places=tuple(None if place is None else innermost(place) for place in at.places))
        return None if at is None else innermost(at)

    def innermost(place: LoopRef) -> LoopRef:
        return LoopRef(place.stage, structure.loops(place.stage).parts(place.name)[-1])

    def stage(said: StageLoops) -> StageLoops:
        def flat(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(part for name in names for part in said.parts(name))

        return replace(
            said,
            loops=flat(said.loops),
            fused=tuple(fused for fused in said.fused if fused.name in said.loops),
            at=inside(said.at),
            parallel=None if said.parallel is None else (flat(said.parallel[0]), said.parallel[1]),
            vector=None if said.vector is None else (said.parts(said.vector[0])[-1], said.vector[1]),
            bound=tuple((part, kind) for name, kind in said.bound for part in said.parts(name)),
            unrolled=None if said.unrolled is None else (flat(said.unrolled[0]), said.unrolled[1]),
            copies=tuple(replace(copy, at=inside(copy.at)) for copy in said.copies),
            starts=None if said.starts is None else Started(inside(said.starts.at)),
            pipelined=None if said.pipelined is None else (said.parts(said.pipelined[0])[-1], said.pipelined[1]),
        )

    return replace(structure, stages={name: stage(said) for name, said in structure.stages.items()})


def runs(items: Iterable[_Item], groups: Iterable[LoopRef | None]) -> Iterator[list[_Item]]:
    """``items`` in their order: those of one fused loop together, any other by itself; ``groups``: of each the fused loop."""
    numbered = enumerate(zip(items, groups, strict=True))
    for _, run in groupby(numbered, lambda each: each[0] if each[1][1] is None else each[1][1]):
        yield [item for _, (item, _) in run]


def counts(total: Number, factors: Sequence[Number | None]) -> tuple[list[Number], Number]:
    """How many iterations of a fused loop of ``total`` ones the parts from each on walk, and at last 1; and whether it comes out
    even. ``None`` among the factors is what the others leave.
    """
    left = ceil(total / product(factor for factor in factors if factor is not None))
    inside: list[Number] = [1]
    for factor in reversed(factors):
        inside.append(minimum(inside[-1] * (left if factor is None else factor), total))
    return inside[::-1], equal(inside[-1], total)


def taken(count: Number, trips: Sequence[Number]) -> tuple[list[Number], Number]:
    """Of ``count`` iterations in a row of fused loops, how many of each of these they are; and whether they are whole runs.

    Args:
        trips: of the loops, outermost first.
    """
    result: list[Number] = []
    whole: Number = 1
    below: Number = 1
    for trip in reversed(trips):
        share = minimum(maximum(floor(count / below), 1), trip)
        divides = both(equal(modulo(count, below), 0), equal(modulo(trip, share), 0))
        whole = both(whole, either(either(count <= below, count >= below * trip), divides))
        result.append(share)
        below = below * trip
    return result[::-1], whole
