"""Canonical keys: programs as bytes that can be put in a set, and fingerprints of them for arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ansorlite.sketch.space import Space

_Key = TypeVar("_Key", bytes, int)


def keys(space: Space, rows: NDArray[np.int64]) -> list[bytes]:
    """One key for each row; two are equal if and only if the rows stand for one program of ``space``."""
    return packed(space.canonical(rows))


def packed(canonical: NDArray[np.int64]) -> list[bytes]:
    """The key of each canonical row: its bytes."""
    rows = np.ascontiguousarray(canonical, dtype=np.int64)
    width = rows.shape[1] * rows.itemsize
    if not width:
        return [b""] * len(rows)
    return cast("list[bytes]", rows.view(np.dtype((np.void, width))).ravel().tolist())


def first_of_each(row_keys: Iterable[_Key], known: set[_Key]) -> list[int]:
    """The positions, ascending, of the first row of every key that is not in ``known``, which then has them all."""
    fresh = []
    for position, key in enumerate(row_keys):
        if key not in known:
            known.add(key)
            fresh.append(position)
    return fresh


def fingerprints(canonical: NDArray[np.int64]) -> NDArray[np.uint64]:
    """``(n,)``: 64 bits of each canonical row, a sum with random weights.

    Equal rows have equal ones; of ten thousand different rows, two have the same with a chance of about 1e-9. Where that
    may at worst lose a candidate they are used instead of keys: an array of them is compared ten times faster.
    """
    rows = np.asarray(canonical, dtype=np.int64).view(np.uint64)
    weights = np.random.default_rng(0).integers(np.iinfo(np.uint64).max, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    return np.asarray(np.einsum("ij,j->i", rows, weights))
