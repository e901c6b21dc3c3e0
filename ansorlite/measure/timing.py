"""How long to time a program: the policies by name. Needs nothing but Python and numpy: it runs on boards, too.

A policy takes a program, what its first call took, what gives the best program so far, seconds of a call of that, and the
settings; it gives seconds of one call.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ansorlite.measure import turns
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.turns import Timed
from ansorlite.runtime.timing import calls_for

Timing: TypeAlias = Callable[[Timed, float, "Callable[[], Timed] | None", "float | None", MeasureSettings], float]

#: AdaTune takes ten batches of turns at most; from the third on it may stop
_BATCHES: Final = 10
_LEAST: Final = 3
#: where the coefficient of variation of the throughputs is below this.
_STEADY: Final = 0.1
#: Of more batches than this, the slowest and the fastest are left out of it.
_WHOLE: Final = 4


def fixed(program: Timed, first: float, _: Callable[[], Timed] | None, __: float | None, settings: MeasureSettings) -> float:
    """The median of the repeats, always as many, whatever the best takes (as AutoTVM's and Ansor's runners)."""
    if first >= settings.long_seconds:
        return first
    calls = calls_for(min(first, turns.undisturbed(program, 1)), settings.repeat_seconds)
    return statistics.median(turns.undisturbed(program, calls) for _ in range(settings.repeats))


def by_variation(
    program: Timed, first: float, _: Callable[[], Timed] | None, __: float | None, settings: MeasureSettings
) -> float:
    """The mean of turns until they are steady (AdaTune: Li et al., NeurIPS 2020)."""
    if first >= settings.long_seconds:
        return first
    calls = calls_for(min(first, turns.undisturbed(program, 1)), settings.repeat_seconds)
    batches: list[float] = []
    while len(batches) < _BATCHES and not steady(batches):
        batches.append(turns.undisturbed(program, calls))
    return statistics.fmean(batches)


def steady(batches: Sequence[float]) -> bool:
    """Whether no further batch is needed after these, each its mean seconds of a call."""
    if len(batches) < _LEAST:
        return False
    speeds = sorted(1.0 / each for each in batches)
    if len(speeds) > _WHOLE:
        speeds = speeds[1:-1]
    return statistics.pstdev(speeds) < _STEADY * statistics.fmean(speeds)


TIMINGS: Final[Mapping[str, Timing]] = {"pairs": turns.beside, "fixed": fixed, "cv": by_variation}
