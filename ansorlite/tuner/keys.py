"""Canonical keys of candidates: equal for equal programs, so that no program is measured twice."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ansorlite.evolution.keys import keys
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.space import Space

#: Hex digits of a key: enough that no two programs of one task ever meet.
_LENGTH: Final = 32


class ProgramKeys:
    """The keys of one task's candidates.

    Args:
        spaces: signature of a sketch -> its space.
    """

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self._spaces = spaces

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether the task has such a program; a record of another version may name a sketch or holes that are gone."""
        if candidate == NAIVE:
            return True
        sizes = self._spaces[candidate.sketch].sizes.tolist() if candidate.sketch in self._spaces else None
        row = candidate.row
        return sizes is not None and len(row) == len(sizes) and all(0 <= n < size for n, size in zip(row, sizes, strict=True))

    def __call__(self, candidates: Sequence[Candidate]) -> list[str]:
        """One key for each, in hex."""
        canonical: dict[Candidate, bytes] = {NAIVE: b""}
        for sketch, group in itertools.groupby(sorted(set(candidates) - {NAIVE}, key=_sketch), key=_sketch):
            members = list(group)
            rows = np.array([candidate.row for candidate in members], np.int64)
            canonical.update(zip(members, keys(self._spaces[sketch], rows), strict=True))
        return [_digest(candidate.sketch, canonical[candidate]) for candidate in candidates]


def _sketch(candidate: Candidate) -> str:
    return candidate.sketch


def _digest(sketch: str, row: bytes) -> str:
    return hashlib.sha256(sketch.encode() + b":" + row).hexdigest()[:_LENGTH]
