"""Every program of a sketch in the order of its rows (AutoTVM's grid: Chen et al., NeurIPS 2018; apache/tvm v0.14,
``autotvm/tuner/index_based_tuner.py``)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows, new
from ansorlite.search.protocol import SearchProblem

#: So many rows are looked at for each that is wanted, before the rest is drawn at random.
_LOOKED_AT: Final = 64


class GridSearch(MeasuredSearch):
    """Rows by their index, a number in mixed radix of which the first hole is the digit that changes first."""

    def __init__(self, problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> None:
        super().__init__(problem, model, rng)
        self._next = dict.fromkeys(self._arms, 0)

    def choose(self, arm: Arm, n: int) -> Rows:
        sizes = [int(size) for size in arm.space.sizes]
        begin = self._next[arm]
        end = min(math.prod(sizes), begin + _LOOKED_AT * n)
        rows = np.array([_digits(index, sizes) for index in range(begin, end)], np.int64).reshape(-1, len(sizes))
        chosen = new(arm, rows)[:n]
        self._next[arm] = end if len(chosen) < n else begin + int((rows == chosen[-1]).all(axis=1).argmax()) + 1
        return chosen


def _digits(index: int, sizes: list[int]) -> list[int]:
    digits = []
    for size in sizes:
        index, digit = divmod(index, size)
        digits.append(digit)
    return digits
