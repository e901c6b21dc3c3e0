"""The numbers of a tensor's elements in the order of memory: row by row, the last dimension counting fastest."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.te.expr import Expr


def flat(places: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """The number of the element at ``places``; the first extent is not needed."""
    result = places[0]
    for place, extent in zip(places[1:], extents[1:], strict=True):
        result = result * extent + place
    return result


def coordinates(number: Expr, extents: Sequence[int]) -> list[Expr]:
    """The places that :func:`flat` makes ``number`` of."""
    found = []
    for extent in extents[:0:-1]:
        found.append(number % extent)
        number = number // extent
    return [number, *found[::-1]]
