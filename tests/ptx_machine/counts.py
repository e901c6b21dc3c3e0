"""What a launch cost, as far as that follows from the program alone."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: Banks of shared memory, each a word of 4 bytes wide; a wavefront reads a word of each.
BANKS = 32
#: Bytes of global memory that are fetched as one.
SECTOR = 32


@dataclass
class Counts:
    """
    Attributes:
        instructions: that warps ran, by the first word of the operation.
        wavefronts, ideal_wavefronts: passes over the banks of shared memory: as they were, and without conflicts.
        sectors, ideal_sectors: of global memory: touched by each warp's instructions, and that the bytes would fill.
    """

    instructions: collections.Counter[str] = field(default_factory=collections.Counter)
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    sectors: int = 0
    ideal_sectors: int = 0

    def shared(self, warps: NDArray[np.int64], lanes: NDArray[np.int64], addresses: NDArray[np.int64], nbytes: int) -> None:
        """An access of ``nbytes`` by each of some threads, which are the ``lanes`` of ``warps``.

        Accesses of 8 bytes go half a warp at a time, those of 16 a quarter.
        """
        words = max(1, nbytes // 4)
        group = warps * words + lanes * words // 32
        word = (addresses[:, None] // 4 + np.arange(words)).ravel()
        each = np.unique(np.repeat(group, words) * (1 << 40) + word)
        group_of, bank = each >> 40, each % BANKS
        key, depth = np.unique(group_of * BANKS + bank, return_counts=True)
        deepest: dict[int, int] = {}
        for g, d in zip((key // BANKS).tolist(), depth.tolist(), strict=True):
            deepest[g] = max(deepest.get(g, 0), d)
        self.wavefronts += sum(deepest.values())
        self.ideal_wavefronts += len(deepest)

    def memory(self, warps: NDArray[np.int64], addresses: NDArray[np.int64], nbytes: int) -> None:
        """An access of ``nbytes`` by each of some threads of ``warps`` to global memory."""
        touched = np.unique(warps * (1 << 44) + addresses // SECTOR)
        self.sectors += len(touched)
        different = np.unique(warps * (1 << 48) + addresses)
        _, threads = np.unique(different >> 48, return_counts=True)
        self.ideal_sectors += int((-(-threads * nbytes // SECTOR)).sum())
