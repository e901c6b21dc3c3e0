"""From what a worker answered, or how it died, to an outcome and a reason that a person can act on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ansorlite.measure.pool import Death
from ansorlite.measure.protocol import Answer, Phase, Status
from ansorlite.records.measurement import Measurement, Outcome

#: What a process writes to standard error when it is the memory limit that ended it.
_MEMORY_WORDS: Final = re.compile(r"MemoryError|bad_alloc|out of memory|Cannot allocate memory", re.IGNORECASE)

_PHASES: Final = {
    Phase.STARTING: "while it started",
    Phase.WORKING: "before the program's first call",
    Phase.RUNNING: "while the program ran",
    Phase.CHECKING: "after the program's first call",
}


@dataclass(frozen=True)
class Verdict:
    """An outcome and its reason: one line, then details; empty for ``OK``."""

    outcome: Outcome
    error: str = ""


def build_verdict(result: Answer | Death) -> Verdict:
    """What became of a candidate in a builder."""
    match result:
        case Death(timed_out=True):
            return Verdict(Outcome.COMPILE_TIMEOUT, f"compiling was not done after {result.elapsed:.1f} s")
        case Death():
            return death_verdict(result, "while it compiled")
        case Answer(status=Status.OK):
            return Verdict(Outcome.OK)
        case Answer(status=Status.MEMORY):
            return Verdict(Outcome.OUT_OF_MEMORY, f"compiling: {result.error}")
        case _:
            return Verdict(Outcome.COMPILE_ERROR, result.error)


def run_verdict(result: Answer | Death) -> Verdict:
    """What became of a program in the runner."""
    match result:
        case Death(timed_out=True):
            return Verdict(Outcome.RUN_TIMEOUT, f"not done after {result.elapsed:.1f} s, {_PHASES[result.phase]}")
        case Death():
            return death_verdict(result, _PHASES[result.phase])
        case Answer(status=Status.OK):
            return Verdict(Outcome.OK)
        case Answer(status=Status.WRONG):
            return Verdict(Outcome.WRONG_RESULT, result.error)
        case Answer(status=Status.SLOW):
            return Verdict(Outcome.EARLY_STOPPED, "far slower than the best; not timed to the end")
        case Answer(status=Status.MEMORY):
            return Verdict(Outcome.OUT_OF_MEMORY, f"running: {result.error}")
        case _:
            return Verdict(Outcome.CRASH, result.error)


def death_verdict(death: Death, where: str) -> Verdict:
    """What became of a program whose worker died by itself, and when it did."""
    memory = _MEMORY_WORDS.search(death.words) is not None
    error = f"the worker died {where}: {death.cause}"
    return Verdict(Outcome.OUT_OF_MEMORY if memory else Outcome.CRASH, f"{error}\n{death.words}".strip())


class Streak:
    """Counts equal failures in a row, so that a tuning in which nothing works ends with the reason, not with silence."""

    def __init__(self) -> None:
        self.first: Measurement | None = None
        self.length = 0
        self._kind: tuple[Outcome, str] | None = None

    def add(self, measurement: Measurement) -> None:
        """Take note of one more measurement. Errors are equal if their first lines are, numbers aside."""
        if not measurement.outcome.failed:
            self.first, self.length, self._kind = None, 0, None
            return
        kind = (measurement.outcome, re.sub(r"\d+", "#", measurement.error.partition("\n")[0]))
        if kind != self._kind:
            self.first, self.length, self._kind = measurement, 0, kind
        self.length += 1
