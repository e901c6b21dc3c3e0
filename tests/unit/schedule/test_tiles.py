"""Tables of tiles: every chain is legal, and no extent is without one."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

from ansorlite.schedule import tiles
from ansorlite.schedule.tiles import MAX_INNER, MAX_ROWS, MAX_WASTE, TileTable, tile_table

EXTENTS = (1, 2, 3, 7, 12, 49, 64, 197, 360, 512, 1000, 1009, 4096)
shapes = pytest.mark.parametrize(("extent", "parts"), [(extent, parts) for extent in EXTENTS for parts in (1, 2, 3, 4)])


def divides(table: TileTable) -> np.ndarray:
    """(rows, parts) bool: whether a level's step divides its span."""
    return np.asarray(table.spans[:, :-1] % table.spans[:, 1:] == 0)


@shapes
def test_every_chain_is_legal(extent: int, parts: int) -> None:
    table = tile_table(extent, parts)
    assert 1 <= table.rows <= MAX_ROWS
    assert table.parts == parts
    assert (table.spans[:, 0] == extent).all()
    assert (table.spans[:, -1] == 1).all()
    assert (np.diff(table.spans, axis=1) <= 0).all()
    assert (table.trips == -(-table.spans[:, :-1] // table.spans[:, 1:])).all()
    assert len(np.unique(table.spans, axis=0)) == table.rows


@shapes
def test_waste_is_bounded_and_at_one_level(extent: int, parts: int) -> None:
    table = tile_table(extent, parts)
    assert ((~divides(table)).sum(axis=1) <= 1).all()
    assert (table.trips.prod(axis=1) <= (1 + MAX_WASTE) * extent + 1e-9).all()


@shapes
def test_perfect_tables_divide(extent: int, parts: int) -> None:
    table = tile_table(extent, parts, perfect=True)
    assert divides(table).all()
    assert (table.trips.prod(axis=1) == extent).all()


@shapes
def test_neighbours_are_other_rows(extent: int, parts: int) -> None:
    table = tile_table(extent, parts)
    assert len(table.neighbours) == table.rows
    assert (table.neighbours.shape[1] > 0) == (table.rows > 1)
    assert ((table.neighbours >= 0) & (table.neighbours < table.rows)).all()
    assert (table.neighbours != np.arange(table.rows)[:, None]).all()


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_an_extent_of_one_has_one_tile(parts: int) -> None:
    table = tile_table(1, parts)
    assert table.spans.tolist() == [[1] * (parts + 1)]
    assert table.neighbours.shape == (1, 0)


def test_primes_tile_imperfectly() -> None:
    assert tile_table(197, 2, perfect=True, max_inner=4096).rows == 2
    inner = set(tile_table(197, 2).spans[:, 1].tolist())
    assert {4, 8, 16, 32} <= inner


@pytest.mark.parametrize("extent", [64, 512, 1000])
def test_the_innermost_loop_is_short(extent: int) -> None:
    assert (tile_table(extent, 4).trips[:, -1] <= MAX_INNER).all()
    assert (tile_table(extent, 4, max_inner=8).trips[:, -1] <= 8).all()


def test_a_prime_that_cannot_be_cut_keeps_its_one_chain() -> None:
    assert tile_table(1009, 1, perfect=True).spans.tolist() == [[1009, 1]]


def test_a_huge_extent_is_thinned_but_keeps_both_kinds() -> None:
    table = tile_table(1 << 20, 4)
    assert 0 < table.rows <= MAX_ROWS
    exact = divides(table).all(axis=1)
    assert exact.any()
    assert (~exact).any()


def test_the_same_table_every_time() -> None:
    tile_table.cache_clear()
    first = tile_table(360, 4)
    tile_table.cache_clear()
    second = tile_table(360, 4)
    assert first is not second
    assert first.spans.tobytes() == second.spans.tobytes()
    assert first.neighbours.tobytes() == second.neighbours.tobytes()


def every_chain(extent: int, parts: int) -> set[tuple[int, ...]]:
    """All chains of spans with one imperfect level at most, by brute force."""
    inner = itertools.product(range(1, extent + 1), repeat=parts - 1)
    chains = ((extent, *spans, 1) for spans in inner if all(a >= b for a, b in pairwise((extent, *spans))))
    return {chain for chain in chains if sum(span % step > 0 for span, step in pairwise(chain)) <= 1}


def divides_all(chain: tuple[int, ...]) -> bool:
    return all(span % step == 0 for span, step in pairwise(chain))


@pytest.mark.parametrize(("extent", "parts"), [(1, 3), (24, 3), (17, 2), (60, 2), (12, 4)])
@pytest.mark.parametrize(("max_inner", "most"), [(64, None), (4, None), (4, (2, 3, 4, 8)), (64, (1, 1, 1, 1))])
def test_chains_are_those_that_there_are(extent: int, parts: int, max_inner: int, most: tuple[int | None, ...] | None) -> None:
    """Chains are made one by one from their counts; a table has those that are legal, within their limits where any are."""
    limits = None if most is None else most[:parts]
    table = {tuple(chain) for chain in tile_table(extent, parts, False, max_inner, limits).spans.tolist()}
    exact = {chain for chain in every_chain(extent, parts) if divides_all(chain)}
    found = {chain for chain in exact if chain[-2] <= max_inner}
    if limits is not None:
        found = {c for c in found if all(s // t <= m for (s, t), m in zip(pairwise(c), limits, strict=True) if m)} or found
    kept = {chain for chain in table if divides_all(chain)}
    assert table <= every_chain(extent, parts)
    assert kept == found or (not kept and table)
    assert tile_table(extent, parts, True, max_inner, limits).rows == len(found or exact)


@pytest.mark.parametrize("parts", [5, 8])
@pytest.mark.parametrize("extent", [720720, 14414400, 1 << 25])
def test_of_millions_of_tiles_only_those_of_the_table_are_made(extent: int, parts: int) -> None:
    table = tile_table(extent, parts, max_inner=16)
    exact = divides(table).all(axis=1)
    assert table.rows == MAX_ROWS
    assert exact.sum() == MAX_ROWS * 2 // 3
    assert tiles._perfect(extent, (None,) * parts).count > 10_000
    assert len(np.unique(table.spans, axis=0)) == table.rows
    assert ((~divides(table)).sum(axis=1) <= 1).all()
    assert (table.trips[:, -1] <= 16).all()
