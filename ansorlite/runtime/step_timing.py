"""What the steps of a model take in place, over some runs of all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import ArgumentError


def check_runs(runs: int) -> None:
    """
    Raises:
        ArgumentError: nothing can be measured in so few runs.
    """
    if runs < 1:
        raise ArgumentError(f"runs is {runs}; it must be at least 1")


def step_medians(run: Callable[[], Sequence[int] | NDArray[np.int64]], runs: int) -> NDArray[np.float64]:
    """The median of each step's nanoseconds, ``(steps,)``.

    Args:
        run: runs the model once; each step's nanoseconds.
        runs: how often it is called, after once to warm up.

    Raises:
        ArgumentError: ``runs`` is less than 1.
    """
    check_runs(runs)
    run()
    return np.asarray(np.median([run() for _ in range(runs)], axis=0), np.float64)
