"""The machine's multiply-adds as a contender: what all threads reach in the same rounds as a kernel, beside the same neighbours.

A virtual machine shares its cores, so the best moment of the peak says little about what a kernel could have reached in its own.
"""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ansorlite.runtime.peaks import Loops
from ansorlite.runtime.timing import turns_for
from ansorlite.target import Target

#: Seconds of one call: long beside waking the threads.
_SECONDS: Final = 0.01


class Peak:
    """A call in which every thread takes the same turns of independent float32 multiply-adds in registers.

    The caller is one of the threads, as it is of a kernel's.

    Attributes:
        flops: of one call; a multiply-add is two.
    """

    def __init__(self, target: Target) -> None:
        self._loops = Loops(target)
        self._helpers = target.threads - 1
        self._pool = ThreadPoolExecutor(max(1, self._helpers))
        self._turns = turns_for(self._seconds, _SECONDS)
        self.flops = target.threads * self._turns * self._loops.flops_a_turn

    def __call__(self) -> None:
        others = [self._pool.submit(self._loops.multiply_adds, self._turns) for _ in range(self._helpers)]
        self._loops.multiply_adds(self._turns)
        for other in others:
            other.result()

    def _seconds(self, turns: int) -> float:
        start = time.perf_counter()
        self._loops.multiply_adds(turns)
        return time.perf_counter() - start


@functools.cache
def peak(target: Target) -> Peak:
    """One for all cases of a process."""
    return Peak(target)
