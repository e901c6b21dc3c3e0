"""What a statement moves between the levels of memory.

Traffic follows the classic argument (Halide, tiling papers): a cache of ``C`` bytes keeps the working set of the outermost
depth at which the lines touched below fit into it, from one iteration of the loop around it to the next; everything further
out is fetched again on every iteration. A cache has sets: rows a power of two apart fall into few of them, and fit only if
those few have room. Addresses of pages are kept in a cache, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ansorlite.columns.arithmetic import both, ceil, largest, low_bit, maximum, minimum, select, total, where
from ansorlite.columns.tape import Number
from ansorlite.features.facts import AccessFacts, Numbers, StatementFacts
from ansorlite.target import Target

#: Sets of the first and of the second cache, as most CPUs have them. The third scatters addresses over its sets.
_SETS: Final = (64, 1024)
_LINE: Final = 64
#: Bytes of a page, and how many of them a core finds without looking for their addresses.
_PAGE: Final = 4096
_PAGES: Final = 64


@dataclass(frozen=True, eq=False)
class Memory:
    """The traffic of one statement.

    Attributes:
        unique: by access: bytes of all lines that it touches.
        traffic: for each cache, by access: bytes that are fetched into it.
        runs: for the first and the second cache: runs of neighbouring lines that are fetched into it.
        pages: whose addresses are looked for.
    """

    unique: Numbers
    traffic: tuple[Numbers, ...]
    runs: tuple[Number, ...]
    pages: Number


@dataclass(frozen=True, eq=False)
class _Dim:
    """One dimension of an access.

    Attributes:
        width: by depth: how many of its elements the loops below touch.
        extent: of the buffer.
        dense: the share of a page that lies between two neighbours of it, at most one.
        begins: for the first and the second cache: in how many sets the rows along it begin, at most.
    """

    width: Numbers
    extent: Number
    dense: Number
    begins: tuple[Number, ...]


class _Box(NamedTuple):
    """What an access touches of its innermost dimensions.

    Attributes:
        run: elements of the longest run of neighbours.
        full: whether all dimensions so far are walked whole: then the next is part of a run of neighbours.
        rows: how many runs.
        pages: that the runs begin on.
        places: for the first and the second cache: how many sets the runs begin in.
    """

    run: Number
    full: Number
    rows: Number
    pages: Number
    places: tuple[Number, ...]


class _Lines(NamedTuple):
    """The cache lines that one access touches below one depth.

    Attributes:
        fetched: how many.
        held: for the first and the second cache: how many lines of it keeping them takes. Lines that fall into few sets
            take as much as if all sets were as full.
        run: the longest run of neighbours.
        pages: that they are on.
    """

    fetched: Number
    held: tuple[Number, ...]
    run: Number
    pages: Number


def memory(s: StatementFacts, looping: Numbers, target: Target) -> Memory:
    """``looping``: by loop: whether it is one in the machine code."""
    caches = tuple(zip((target.l1, target.l2), _SETS, strict=True))
    known = {access: _lines(access, caches) for access in dict.fromkeys(s.accesses)}
    lines = [known[access] for access in s.accesses]
    outer: list[Number] = [1]
    for trip in s.trips:
        outer.append(outer[-1] * trip)
    fetched = [[here.fetched for here in line] for line in lines]
    pages = [[here.pages for here in line] for line in lines]
    room = [_sums([[here.held[level] for here in line] for line in lines]) for level in range(len(caches))]
    levels = zip((*room, _sums(fetched)), (target.l1, target.l2, target.l3), strict=True)
    traffic = tuple(
        [lines * _LINE for lines in _traffic(fetched, outer, _fitting(held, capacity / _LINE))] for held, capacity in levels
    )
    innermost = _innermost(s, looping)
    runs = [select([here.run for here in line], innermost) * _LINE for line in lines]
    return Memory(
        [line[0] * _LINE for line in fetched],
        traffic,
        tuple(total(t / run for t, run in zip(level, runs, strict=True)) for level in traffic[: len(caches)]),
        total(_traffic(pages, outer, _fitting(_sums(pages), _PAGES))),
    )


def _sums(parts: Sequence[Numbers]) -> list[Number]:
    return [total(here) for here in zip(*parts, strict=True)]


def _lines(access: AccessFacts, caches: Sequence[tuple[int, int]]) -> list[_Lines]:
    """By depth; ``caches``: the bytes and the sets of each."""
    dims = _dims(access, caches)
    # The box of the first dimensions, the first two, and so on: what a loop does not move stays as it was around the loop.
    boxes = [_Box(1, 1, 1, 1, (1,) * len(caches))]
    result: list[_Lines] = []
    if not dims:
        return [_held(boxes[0], 0, access.item, caches)] * (len(access.moves) + 1)
    before: tuple[Number, ...] = ()
    for here in zip(*(dim.width for dim in dims), strict=True):
        if here == before:
            result.append(result[-1])
            continue
        same = next((i for i, (a, b) in enumerate(zip(here, before, strict=False)) if a is not b), 0)
        before = here
        del boxes[same + 1 :]
        for dim, width in zip(dims[same:], here[same:], strict=True):
            boxes.append(_with(boxes[-1], dim, width))
        result.append(_held(boxes[-1], len(dims), access.item, caches))
    return result


def _dims(access: AccessFacts, caches: Sequence[tuple[int, int]]) -> list[_Dim]:
    """The dimensions of more than one element, the innermost first."""
    result: list[_Dim] = []
    stride: Number = access.item
    for width, extent in zip(reversed(access.widths), reversed(access.extents), strict=True):
        if largest(extent) > 1:
            # Rows whose distance is a multiple of a large power of two begin in few sets.
            begins = tuple(maximum(sets * _LINE / low_bit(stride), 1) for _, sets in caches) if result else ()
            result.append(_Dim(width, extent, minimum(stride / _PAGE, 1), begins))
            stride = stride * extent
    return result


def _with(box: _Box, dim: _Dim, width: Number) -> _Box:
    """``box`` with one more dimension."""
    run = where(box.full, box.run * width, box.run)
    full = both(box.full, width >= dim.extent)
    if not dim.begins:
        return _Box(run, full, box.rows, box.pages, box.places)
    rows = where(box.full, 1, width)
    places = tuple(place * minimum(rows, begins) for place, begins in zip(box.places, dim.begins, strict=True))
    return _Box(run, full, box.rows * rows, box.pages * maximum(dim.dense * rows, 1), places)


def _held(box: _Box, dims: int, item: int, caches: Sequence[tuple[int, int]]) -> _Lines:
    row = ceil(box.run * (item / _LINE))
    lines = row * box.rows
    held: list[Number] = []
    for (size, sets), place in zip(caches, box.places, strict=True):
        spread = (lines / minimum(row * place, sets) - 1) * (size / _LINE / (size // (sets * _LINE) - 1))
        held.append(maximum(spread, lines) if dims > 1 else lines)
    return _Lines(lines, tuple(held), row, box.pages * maximum(row * (_LINE / _PAGE), 1))


def _innermost(s: StatementFacts, looping: Numbers) -> Number:
    """The depth around the innermost loop of the machine code.

    Of a parallel loop it is one iteration: which iterations a thread takes in a row is not known.
    """
    result: Number = 0
    for depth, (flag, parallel) in enumerate(zip(looping, s.parallel, strict=True)):
        result = where(flag, where(parallel, depth + 1, depth), result)
    return result


def _fitting(held: Numbers, capacity: float) -> Number:
    """The depth around the outermost one of which no more than ``capacity`` is held.

    One run of the loop around what fits fetches all of its lines once: neighbouring iterations find what they share.
    """
    last = len(held) - 1
    result: Number = max(last - 1, 0)
    for depth in reversed(range(last)):
        result = where(held[depth] <= capacity, max(depth - 1, 0), result)
    return result


def _traffic(lines: Sequence[Numbers], outer: Numbers, depth: Number) -> list[Number]:
    """For each access what is fetched in all, if what is below ``depth`` is fetched once a run of the loops around it."""
    times = select(outer, depth)
    return [select(line, depth) * times for line in lines]
