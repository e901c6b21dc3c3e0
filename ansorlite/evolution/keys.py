"""Canonical keys: programs as bytes that can be put in a set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ansorlite.sketch.space import Space


def keys(space: Space, rows: NDArray[np.int64]) -> list[bytes]:
    """One key for each row; two are equal if and only if the rows stand for one program of ``space``."""
    canonical = np.ascontiguousarray(space.canonical(rows), dtype=np.int64)
    width = canonical.shape[1] * canonical.itemsize
    if not width:
        return [b""] * len(canonical)
    return cast("list[bytes]", canonical.view(np.dtype((np.void, width))).ravel().tolist())


def first_of_each(row_keys: Iterable[bytes], known: set[bytes]) -> list[int]:
    """The positions, ascending, of the first row of every key that is not in ``known``, which then has them all."""
    fresh = []
    for position, key in enumerate(row_keys):
        if key not in known:
            known.add(key)
            fresh.append(position)
    return fresh
