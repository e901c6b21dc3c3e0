"""Accesses of neighbours: the bytes of words, which are packed four at a time, or the points of a stencil.

``X[4 * k]``, ``X[4 * k + 1]``, ``X[4 * k + 2]`` and ``X[4 * k + 3]`` read one box together, each of them some of all its lines.
The first of such accesses stands for all.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ansorlite.analysis.access import Access
from ansorlite.columns.arithmetic import minimum
from ansorlite.features.facts import AccessFacts
from ansorlite.te.index.form import Affine


class Location(NamedTuple):
    """What an access reads, and the index of each dimension."""

    of: Hashable
    dims: tuple[Affine, ...]


def location_of(access: Access) -> Location | None:
    """Of an access all of whose indices have a form."""
    forms = [form for form in access.dims if form is not None]
    return Location(access.tensor, tuple(forms)) if len(forms) == len(access.dims) else None


def with_neighbours(found: Sequence[AccessFacts], locations: Sequence[Location | None]) -> tuple[AccessFacts, ...]:
    """``found``, where the first of accesses that differ by neighbouring constants has the lines of all.

    Args:
        locations: of each access; ``None`` of one that is counted by itself whatever it reads.
    """
    groups: dict[Hashable, list[tuple[int, Location]]] = {}
    for position, location in enumerate(locations):
        if location is not None:
            groups.setdefault((location.of, tuple(form.terms for form in location.dims)), []).append((position, location))
    result = list(found)
    for members in groups.values():
        spreads = [_spread(forms) for forms in zip(*(location.dims for _, location in members), strict=True)]
        known = [spread for spread in spreads if spread is not None]
        if len(known) < len(spreads) or not any(known):
            continue
        (first, _), *others = members
        of = found[first]
        widths = [
            [minimum(width + spread, extent) for width in dim] if spread else dim
            for dim, spread, extent in zip(of.widths, known, of.extents, strict=True)
        ]
        result[first] = replace(of, widths=tuple(widths))
        for other, _ in others:
            result[other] = replace(found[other], counted=False)
    return tuple(result)


def _spread(forms: Sequence[Affine]) -> int | None:
    """How far apart indices are that differ in their constants; ``None`` where these are not neighbours."""
    constants = {form.constant for form in forms}
    spread = max(constants) - min(constants)
    return spread if spread < len(constants) else None
