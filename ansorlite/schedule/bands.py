"""The bands of a nest: runs of like loops, found from the list of its loops and the places at which something is computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby
from typing import TypeAlias

from ansorlite.schedule.structure import Location, StageLoops, places
from ansorlite.schedule.walks import Walk


def kept(said: StageLoops, walks: Mapping[str, Walk]) -> list[str]:
    """The loops without those over axes of one element, unless they are bound; a nest has one loop at least, to hang annotations
    on."""
    bound = dict(said.bound)
    return [name for name in said.loops if walks[name].axis.extent > 1 or name in bound] or list(said.loops[-1:])


class Depths:
    """How many loops are around the places of a nest. Loops that threads share are one, and so are neighbours that are bound to
    one thing: nothing is computed between them.

    Attributes:
        all: the depths at which something may be computed.
    """

    def __init__(self, said: StageLoops, names: Sequence[str], locations: Sequence[Location]) -> None:
        self._loops = said.loops
        self._names = names
        self._shared = sum(name in names for name in (said.parallel[0] if said.parallel is not None else ()))
        self._bound = dict(said.bound)
        self.all = frozenset(self.of(loop.name) for at in locations for loop in places(at) if loop is not None)

    def of(self, loop: str) -> int:
        """Of the place right inside of a loop."""
        end = self._loops.index(loop) + 1
        while loop in self._bound and self._bound.get((*self._loops, "")[end]) is self._bound[loop]:
            end += 1
        inside = self._loops[:end]
        depth = sum(name in inside for name in self._names)
        return max(depth, self._shared)


#: The loops of a band, and whether they add up.
Band: TypeAlias = tuple[bool, list[str]]


def bands_of(
    names: Sequence[str], walks: Mapping[str, Walk], depths: Collection[int], vector: str | None, reduces: bool
) -> list[Band]:
    """The loops in runs of like ones, cut where something may be computed between them.

    The innermost tile of a reduction, the space loops behind all that add up, is a band even where it has no loops. A vectorised
    loop that adds up is a last band behind it; then a band that adds up is before the tile, too.
    """
    lane = [vector] if vector is not None and walks[vector].reduce else []
    result: list[Band] = []
    for position, name in enumerate(names[: len(names) - len(lane)]):
        if not result or position in depths or result[-1][0] != walks[name].reduce:
            result.append((walks[name].reduce, []))
        result[-1][1].append(name)
    runs = [adds for adds, _ in groupby(adds for adds, _ in result)]
    if lane and not any(runs[-2:]):
        result.append((True, []))
    if reduces and (not result or result[-1][0]):
        result.append((False, []))
    return [*result, (True, lane)] if lane else result


def bands_around(depth: int, bands: Sequence[Band]) -> int:
    """The fewest outermost bands that have ``depth`` loops."""
    loops = accumulate((len(names) for _, names in bands), initial=0)
    return next(number for number, count in enumerate(loops) if count >= depth)
