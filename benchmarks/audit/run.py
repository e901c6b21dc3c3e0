"""Many variations of one operator."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from benchmarks.audit.seeds import seeds
from benchmarks.audit.vary import varied
from benchmarks.audit.verdict import Verdict, Way, judge


def audit(operator: str, number: int, seed: int) -> list[Verdict]:
    """``number`` variations of the operator, each with its inputs given in one of the three ways."""
    rng = np.random.default_rng((seed, crc32(operator.encode())))
    known = seeds()[operator]
    found = []
    for turn in range(number):
        case = known[int(rng.integers(len(known)))]
        if turn:
            case = varied(case, rng)
        found.append(judge(case, list(Way)[turn % len(Way)]))
    return found
