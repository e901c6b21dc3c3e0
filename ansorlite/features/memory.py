"""What a statement moves between the levels of memory.

Traffic follows the classic argument (Halide, tiling papers): a cache of ``C`` bytes keeps the working set of the outermost
depth at which the lines touched below fit into it, from one iteration of the loop around it to the next; everything further
out is fetched again on every iteration. A cache has sets: rows a power of two apart fall into few of them, and fit only if
those few have room. What barely fits is kept in part: arrays meet in some sets, and others pass through. Addresses of pages
are kept in a cache, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ansorlite.alignment import CACHE_LINE, PAGE
from ansorlite.columns.arithmetic import along, both, ceil, largest, low_bit, maximum, minimum, select, total, where
from ansorlite.columns.compound import Compound
from ansorlite.columns.tape import Number, bounds
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.features.runs import side_by_side, starts, walked_on
from ansorlite.features.straight_line import straight
from ansorlite.target import Target

#: Sets of the first and of the second cache, as most CPUs have them. The third scatters addresses over its sets.
_SETS: Final = (64, 1024)
#: Ways of a core's caches that are not counted on: one or two, so that what would fill the last but one is half lost. What matrix
#: units read, whole tiles of whole lines, was found no slower where it fills all.
_SPARE_WAYS: Final = (1, 2)


@dataclass(frozen=True, eq=False)
class Memory:
    """The traffic of one statement.

    Attributes:
        unique: by access: bytes of all lines that it touches.
        traffic: for each cache, by access: bytes that are fetched into it.
        runs: for the first and the second cache: runs of neighbouring lines that are fetched into it, into the first in the order
            of the innermost loop, into the second in that of all loops.
        pages: whose addresses are looked for.
        inside: by access: lines that one iteration of the parallel loop touches.
    """

    unique: Numbers
    traffic: tuple[Numbers, ...]
    runs: tuple[Number, ...]
    pages: Number
    inside: Numbers


class _Dim(NamedTuple):
    """One dimension of an access.

    Attributes:
        width: by depth: how many of its elements the loops below touch.
        extent: of the buffer, with what is behind a run along it.
        dense: the share of a page that lies between two neighbours of it, at most one.
        first, second: in how many sets of the first and of the second cache the rows along it begin, at most.
    """

    width: Numbers
    extent: Number
    dense: Number
    first: Number
    second: Number


class _Lines(NamedTuple):
    """The cache lines that one access touches below one depth.

    Attributes:
        fetched: how many.
        first, second: how many lines of the first and the second cache keeping them takes. Lines that fall into few sets
            take as much as if all sets were as full.
        run: the longest run of neighbours.
        pages: that they are on.
    """

    fetched: Number
    first: Number
    second: Number
    run: Number
    pages: Number


#: Of an access whose lines another one counts.
_NONE: Final = _Lines(0, 0, 0, 1, 0)


def memory(s: StatementFacts, looping: Numbers, tiled: Number, target: Target) -> Memory:
    """``looping``: by loop: whether it is one in the machine code; ``tiled``: whether matrix units do the work."""
    caches = tuple(zip((target.l1, target.l2), _SETS, strict=True))
    known = {access: _lines(access, caches) for access in dict.fromkeys(s.accesses)}
    lines = [known[access] for access in s.accesses]
    outer: list[Number] = [1]
    for trip in s.trips:
        outer.append(outer[-1] * trip)
    fetched = [[here.fetched for here in line] for line in lines]
    pages = [[here.pages for here in line] for line in lines]
    first, second = (_sums([[here[level] for here in line] for line in lines]) for level in (1, 2))
    # A thread takes iterations in a row, so loops that are fused to a parallel one are loops.
    levels = zip((first, second, _sums(fetched)), _capacities(target, caches, tiled), strict=True)
    traffic = tuple(_mean([_traffic(fetched, outer, _fitting(held, most)) for most in each]) for held, each in levels)
    innermost, inside = _innermost(s, looping), _inside_parallel(s)
    runs = [[here.run for here in line] for line in lines]
    inner = [select(of, innermost) for of in runs]
    around = straight(looping)
    followed = side_by_side(runs, fetched, traffic[1], outer, around) <= target.machine.streams
    walked = [walked_on(of, touched, around, followed) for of, touched in zip(runs, fetched, strict=True)]
    return Memory(
        [line[0] * CACHE_LINE for line in fetched],
        traffic,
        (starts(traffic[0], inner), starts(traffic[1], walked)),
        total(_traffic(pages, outer, _fitting(_sums(pages), target.machine.tlb_pages))),
        [select(line, inside) for line in fetched] if target.threads > 1 else [0] * len(fetched),
    )


def _capacities(target: Target, caches: Sequence[tuple[int, int]], tiled: Number) -> tuple[Numbers, ...]:
    """Of each cache, lines that it is taken to keep: the traffic is the mean of what each of its numbers says.

    Args:
        caches: the bytes and the sets of a core's own.
    """
    *own, third = (reach / CACHE_LINE for reach in target.reach)
    kept = []
    for lines, (nbytes, sets) in zip(own, caches, strict=True):
        ways = max(nbytes // (sets * CACHE_LINE), 1)
        kept.append([where(tiled, lines, lines * max(ways - spare, 1) / ways) for spare in _SPARE_WAYS])
    return *kept, [third]


def _mean(traffic: Sequence[Sequence[Number]]) -> list[Number]:
    """By access: bytes, from lines."""
    return [total(lines) * (CACHE_LINE / len(traffic)) for lines in zip(*traffic, strict=True)]


def _sums(parts: Sequence[Numbers]) -> list[Number]:
    return along(lambda *here: total(here), *parts)


def _lines(access: AccessFacts, caches: Sequence[tuple[int, int]]) -> list[_Lines]:
    """By depth; ``caches``: the bytes and the sets of each."""
    if not access.counted:
        return [_NONE] * (len(access.moves) + 1)
    dims, share = _dims(access, caches), access.item / CACHE_LINE
    scales = [size / CACHE_LINE / max(size // (sets * CACHE_LINE) - 1, 1) if len(dims) > 1 else 0 for size, sets in caches]

    def lines(*widths: Number) -> _Lines:
        items = [(width, *dim[1:]) for width, dim in _walked(widths, dims)]
        inner, *outer = map(largest, widths or (1,))
        row = inner * share
        most = (1, (math.ceil(row) if math.isfinite(row) else row) * math.prod(outer))
        return _Lines(*_BOX(items, (share, *scales), (most, (1, math.inf), (1, math.inf), most, most)))

    return along(lines, *(dim.width for dim in dims)) if dims else [lines()] * (len(access.moves) + 1)


def _walked(widths: Sequence[Number], dims: Sequence[_Dim]) -> Iterator[tuple[Number, _Dim]]:
    """The dimensions that matter: one element more of a box that is not full changes nothing."""
    full = True
    for width, dim in zip(widths, dims, strict=True):
        if full or width != 1:
            yield width, dim
        full = full and largest(width) >= bounds(dim.extent)[0]


def _dims(access: AccessFacts, caches: Sequence[tuple[int, int]]) -> list[_Dim]:
    """The dimensions of more than one element, the innermost first."""
    result: list[_Dim] = []
    stride: Number = access.item
    pads = access.pads or [0] * len(access.extents)
    for width, extent, pad in zip(reversed(access.widths), reversed(access.extents), reversed(pads), strict=True):
        if largest(extent) > 1 or largest(pad) > 0:
            # Rows whose distance is a multiple of a large power of two begin in few sets.
            begins = [maximum(sets * CACHE_LINE / low_bit(stride), 1) for _, sets in caches]
            # A run along it that ends with unused elements is never part of a longer one.
            result.append(_Dim(width, extent + pad, minimum(stride / PAGE, 1), *begins))
            stride = stride * extent + pad * access.item if access.pads else stride * extent
    return result


def _with_dimension(
    run: Number, full: Number, rows: Number, pages: Number, first: Number, second: Number,
    width: Number, extent: Number, dense: Number, begins_first: Number, begins_second: Number,
) -> tuple[Number, ...]:  # fmt: skip
    """What an access touches of its innermost dimensions, with one more of them.

    Args:
        run: elements of the longest run of neighbours.
        full: whether all dimensions so far are walked whole: then the next is part of a run of neighbours.
        rows: how many runs.
        pages: that the runs begin on.
        first, second: how many sets of the first and of the second cache the runs begin in.
        width, extent, dense, begins_first, begins_second: of the next dimension.
    """
    times = where(full, 1, width)
    return (
        where(full, run * width, run),
        both(full, width >= extent),
        rows * times,
        pages * maximum(dense * times, 1),
        first * minimum(times, begins_first),
        second * minimum(times, begins_second),
    )


def _lines_of_box(
    run: Number, _: Number, rows: Number, pages: Number, first: Number, second: Number,
    share: Number, scale_first: Number, scale_second: Number,
) -> tuple[Number, ...]:  # fmt: skip
    """As :class:`_Lines` has them; ``share``: of a line that an element is; ``scale``: from lines to the sets they fill."""
    row = ceil(run * share)
    lines = row * rows
    places = zip((first, second), (scale_first, scale_second), _SETS, strict=True)
    held = [maximum((lines / minimum(row * place, sets) - 1) * scale, lines) for place, scale, sets in places]
    return lines, *held, row, pages * maximum(row * (CACHE_LINE / PAGE), 1)


#: From the dimensions of an access, the innermost first, to its lines.
_BOX: Final = Compound((1, 1, 1, 1, 1, 1), _with_dimension, 5, _lines_of_box, 3)


def _innermost(s: StatementFacts, looping: Numbers) -> Number:
    """The depth around the innermost loop of the machine code.

    Of a parallel loop it is one iteration: which iterations a thread takes in a row is not known.
    """
    result: Number = 0
    for depth, (flag, parallel) in enumerate(zip(looping, s.parallel, strict=True)):
        result = where(flag, where(parallel, depth + 1, depth), result)
    return result


def _inside_parallel(s: StatementFacts) -> Number:
    """The depth inside of the parallel loop; 0 where there is none."""
    result: Number = 0
    for depth, parallel in enumerate(s.parallel):
        result = where(parallel, depth + 1, result)
    return result


def _fitting(held: Numbers, capacity: Number) -> Number:
    """The depth around the outermost one of which no more than ``capacity`` is held.

    One run of the loop around what fits fetches all of its lines once: neighbouring iterations find what they share.
    """
    last = len(held) - 1
    result: Number = max(last - 1, 0)
    for depth in reversed(range(last)):
        # What a loop changes nothing of fits outside of it, too.
        if depth == 0 or held[depth] is not held[depth - 1]:
            result = where(held[depth] <= capacity, max(depth - 1, 0), result)
    return result


def _traffic(lines: Sequence[Numbers], outer: Numbers, depth: Number) -> list[Number]:
    """For each access what is fetched in all, if what is below ``depth`` is fetched once a run of the loops around it."""
    times = select(outer, depth)
    return [select(line, depth) * times for line in lines]
