"""Many variations of one operator."""

from __future__ import annotations

from typing import Final
from zlib import crc32

import numpy as np

from benchmarks.audit.seeds import seeds
from benchmarks.audit.vary import varied
from benchmarks.audit.verdict import Outcome, Verdict, Way, judge

#: Variations in a row that onnxruntime refuses, after which it is taken not to have the operator at all.
_HOPELESS: Final = 3

#: How often to look for a variation that onnxruntime takes.
_TRIES: Final = 6


def audit(operator: str, number: int, seed: int) -> list[Verdict]:
    """``number`` variations of the operator, each with its inputs given in one of the three ways.

    Variations that onnxruntime refuses are replaced, as far as a few tries find others.
    """
    rng = np.random.default_rng((seed, crc32(operator.encode())))
    known = seeds()[operator]
    found = []
    for turn in range(number):
        for _ in range(_TRIES):
            case = varied(known[int(rng.integers(len(known)))], rng)
            verdict = judge(case, list(Way)[turn % len(Way)])
            if verdict.outcome is not Outcome.UNCHECKED:
                break
        found.append(verdict)
        if len(found) == _HOPELESS and all(v.outcome is Outcome.UNCHECKED for v in found):
            break
    return found
