"""Which of several functions that do the same is fastest: generated code, or a library's (Woodpecker-DL: Liu et al., arXiv
2008.04567, takes the better of both for each operator)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.loops.nodes import Buffer
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.timing import calls_for, wall_clock
from ansorlite.te import dtypes

Code: TypeAlias = Callable[..., Any]

#: Each is called in so many turns, so that what else the machine does slows all alike,
_TURNS: Final = 9
#: of so many seconds.
_SECONDS: Final = 0.01
#: To take the place of the first, another must have been faster in this share of the turns.
_SURE: Final = 0.75


def fastest(
    codes: Sequence[Code], arrays: Sequence[Array], clock: Callable[[Callable[[int], None], int], float] = wall_clock
) -> int:
    """The position of the fastest; the first, unless another is faster beyond luck.

    Args:
        codes: at least one.
        arrays: what they are called with.
        clock: seconds of so many calls in a row.
    """

    def call(code: Code) -> Callable[[int], None]:
        def several(count: int) -> None:
            for _ in range(count):
                code(*arrays)

        return several

    bound = [call(code) for code in codes]
    for each in bound:
        clock(each, 1)  # first calls load and allocate
    calls = [calls_for(clock(each, 1), _SECONDS) for each in bound]
    turns = [[clock(each, count) / count for each, count in zip(bound, calls, strict=True)] for _ in range(_TURNS)]
    medians = [statistics.median(turn[at] for turn in turns) for at in range(len(codes))]
    best = medians.index(min(medians))
    ahead = sum(turn[best] < turn[0] for turn in turns)
    return best if ahead >= _SURE * len(turns) else 0


def arrays_for(buffers: Sequence[Buffer], seed: int) -> list[Array]:
    """Arrays of the shapes and dtypes of ``buffers``: floats of size about 1, small integers."""
    rng = np.random.default_rng(seed)
    found = []
    for buffer in buffers:
        kind = dtypes.NUMPY[buffer.dtype]
        drawn = rng.standard_normal(buffer.shape) if dtypes.is_float(buffer.dtype) else rng.integers(0, 2, buffer.shape)
        found.append(drawn.astype(kind))
    return found
