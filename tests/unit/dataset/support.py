"""Small data sets, whose seconds are made up."""

from __future__ import annotations

import numpy as np

import ansorlite as al
from ansorlite.dataset import Entry
from ansorlite.dataset.entry import parts_of
from ansorlite.features.programs import ProgramSpace
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.spaces.derivation import derive
from ansorlite.target import host
from tests.workloads import matmul


def task(n: int = 16) -> al.Task:
    return al.Task(matmul(n, 8, 12), host(1))


def candidates(of: al.Task, n: int) -> list[Candidate]:
    """Programs of all sketches, and the loops as written."""
    found = [NAIVE]
    for sketch in derive(of):
        space = ProgramSpace(sketch)
        rows = space.space.sample(n, np.random.default_rng(0))
        # Programs of equal features would have to have equal seconds.
        rows = rows[np.sort(np.unique(space.programs(rows).features, axis=0, return_index=True)[1])]
        found += [space.candidate(tuple(row)) for row in rows.tolist()]
    return list(dict.fromkeys(found))


def entry(n: int = 16, programs: int = 4, device: str = "here", origin: str = "net") -> Entry:
    own = task(n)
    chosen = candidates(own, programs)
    latencies = np.random.default_rng(n).uniform(1e-5, 1e-3, len(chosen))
    latencies[1] = np.inf
    return Entry(own, device, origin, parts_of(own, derive(own), chosen, latencies))
