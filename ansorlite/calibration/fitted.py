"""The constants of this machine, fitted to small programs that are compiled and timed on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ansorlite.calibration.fit import fit
from ansorlite.calibration.programs import drawn
from ansorlite.calibration.tasks import small_computations
from ansorlite.machine.constants import MachineConstants
from ansorlite.target import Target
from ansorlite.task import Task

#: Programs of each computation: drawn uniformly, and found by a search.
_UNIFORM: Final = 14
_SEARCHED: Final = 14


def fit_to_programs(target: Target, start: MachineConstants, seed: int = 0) -> tuple[MachineConstants, float, float]:
    """See :func:`ansorlite.calibration.fit.fit`; the programs run on one thread."""
    alone, samples = replace(target, threads=1, machine=start), []
    for tensors in small_computations():
        task = Task(tensors, alone)
        rng = np.random.default_rng(seed)
        found = drawn(task, _UNIFORM, _SEARCHED, rng).timed(rng)
        samples.append(found.sample())
    return fit(alone, start, samples)
