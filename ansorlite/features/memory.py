"""What a statement moves between the levels of memory.

Traffic follows the classic argument (Halide, tiling papers): a cache of ``C`` bytes keeps the working set of the outermost
depth at which the lines touched below fit into it, from one iteration of the loop around it to the next; everything further
out is fetched again on every iteration. A cache has sets: rows a power of two apart fall into few of them, and fit only if
those few have room. Addresses of pages are kept in a cache, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.columns.arithmetic import both, ceil, largest, low_bit, maximum, minimum, product, total, where
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
class _Lines:
    """The cache lines that one access touches below one depth.

    Attributes:
        fetched: bytes of the lines.
        held: for the first and the second cache: how many bytes of it keeping them takes. Lines that fall into few sets
            take as much as if all sets were as full.
        run: bytes of the longest run of neighbours.
        pages: that they are on.
    """

    fetched: Number
    held: tuple[Number, ...]
    run: Number
    pages: Number


def memory(s: StatementFacts, looping: Numbers, target: Target) -> Memory:
    """``looping``: by loop: whether it is one in the machine code."""
    caches = tuple(zip((target.l1, target.l2), _SETS, strict=True))
    lines = [_lines(access, caches) for access in s.accesses]
    outer = [product(s.trips[:depth]) for depth in range(len(s.trips) + 1)]
    fetched = [[here.fetched for here in line] for line in lines]
    pages = [[here.pages for here in line] for line in lines]
    room = [_sums([[here.held[level] for here in line] for line in lines]) for level in range(len(caches))]
    capacities = (target.l1, target.l2, target.l3)
    levels = zip((*room, _sums(fetched)), capacities, strict=True)
    amounts = _amounts(fetched, outer)
    traffic = tuple(_traffic(amounts, held, capacity) for held, capacity in levels)
    runs = [_at_innermost([here.run for here in line], s, looping) for line in lines]
    return Memory(
        [line[0] for line in fetched],
        traffic,
        tuple(total(t / run for t, run in zip(level, runs, strict=True)) for level in traffic[: len(caches)]),
        total(_traffic(_amounts(pages, outer), _sums(pages), _PAGES)),
    )


def _sums(parts: Sequence[Numbers]) -> list[Number]:
    return [total(here) for here in zip(*parts, strict=True)]


def _lines(access: AccessFacts, caches: Sequence[tuple[int, int]]) -> list[_Lines]:
    """By depth; ``caches``: the bytes and the sets of each."""
    dims = [dim for dim in zip(reversed(access.widths), reversed(access.extents), strict=True) if largest(dim[1]) > 1]
    extents = [extent for _, extent in dims]
    result: list[_Lines] = []
    before: list[Number] | None = None
    for depth in range(len(access.moves) + 1):
        here = [width[depth] for width, _ in dims]
        # What a loop does not move is touched below it as it is around it.
        same = before is not None and all(a is b for a, b in zip(here, before, strict=True))
        result.append(result[-1] if same else _box(here, extents, access.item, caches))
        before = here
    return result


def _box(widths: Numbers, extents: Numbers, item: int, caches: Sequence[tuple[int, int]]) -> _Lines:
    """The lines of a box; the innermost dimension first."""
    elements: Number = 1
    run: Number = 1
    full: Number = 1  # whether all dimensions so far are walked whole: then the next is part of a run of neighbours
    stride: Number = item
    pages: Number = 1
    places: list[Number] = [1] * len(caches)
    for position, (width, extent) in enumerate(zip(widths, extents, strict=True)):
        elements = elements * width
        run = where(full, run * width, run)
        if position:
            rows = where(full, 1, width)
            pages = pages * maximum(minimum(stride / _PAGE, 1) * rows, 1)
            # Rows whose distance is a multiple of a large power of two begin in few sets.
            begins = [minimum(rows, maximum(sets * _LINE / low_bit(stride), 1)) for _, sets in caches]
            places = [place * begin for place, begin in zip(places, begins, strict=True)]
        full = both(full, width >= extent)
        stride = stride * extent
    row = ceil(run * (item / _LINE))
    lines = row * (elements / run)
    fetched = lines * _LINE
    held: list[Number] = []
    for (size, sets), place in zip(caches, places, strict=True):
        spread = (lines / minimum(row * place, sets) - 1) * (size / (size // (sets * _LINE) - 1))
        held.append(maximum(spread, fetched) if len(widths) > 1 else fetched)
    return _Lines(fetched, tuple(held), row * _LINE, pages * maximum(row * (_LINE / _PAGE), 1))


def _at_innermost(values: Numbers, s: StatementFacts, looping: Numbers) -> Number:
    """By depth to the one around the innermost loop of the machine code.

    Of a parallel loop it is one iteration: which iterations a thread takes in a row is not known.
    """
    result = values[0]
    for depth, (flag, parallel) in enumerate(zip(looping, s.parallel, strict=True)):
        result = where(flag, where(parallel, values[depth + 1], values[depth]), result)
    return result


def _amounts(fetched: Sequence[Numbers], outer: Numbers) -> list[list[Number]]:
    """By the depth that a cache keeps, for each access what is fetched in all."""
    # One run of the loop around what fits fetches all of its lines once: neighbouring iterations find what they share.
    around = [max(depth - 1, 0) for depth in range(len(outer))]
    return [[line[depth] * outer[depth] for line in fetched] for depth in around]


def _traffic(amounts: Sequence[list[Number]], held: Numbers, capacity: int) -> list[Number]:
    """For each access what is fetched into a cache of ``capacity``: it keeps the outermost depth that fits."""
    result = amounts[-1]
    for depth in reversed(range(len(held) - 1)):
        fits = held[depth] <= capacity
        result = [where(fits, amount, found) for amount, found in zip(amounts[depth], result, strict=True)]
    return result
