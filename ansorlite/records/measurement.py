"""What became of one candidate: the row of the database, and what ``measure`` yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ansorlite.codegen.object import Report
from ansorlite.search.observation import Observation
from ansorlite.sketch.candidate import Candidate


class Outcome(Enum):
    """How a measurement ended. The value is its name in the database and in JSON lines."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    RUN_TIMEOUT = "run_timeout"
    CRASH = "crash"
    OUT_OF_MEMORY = "out_of_memory"
    WRONG_RESULT = "wrong_result"
    EARLY_STOPPED = "early_stopped"

    @property
    def failed(self) -> bool:
        """Whether something is wrong with the candidate; one that is merely slow is not."""
        return self not in (Outcome.OK, Outcome.EARLY_STOPPED)

    @property
    def timed(self) -> bool:
        """Whether there is a latency, or a lower bound of it."""
        return not self.failed


#: Of one register that is spilled once: it is stored, and loaded.
_BYTES_OF_SPILL: Final = 8


@dataclass(frozen=True)
class Seconds:
    """Where the wall time of one measurement went, in seconds.

    Attributes:
        build: lowering and compiling.
        run: running for time, the confirmation beside the old best included.
        check: comparing the output with the reference.
    """

    build: float = 0.0
    run: float = 0.0
    check: float = 0.0

    @property
    def total(self) -> float:
        return self.build + self.run + self.check


@dataclass(frozen=True)
class Measurement:
    """What became of one candidate on one task and target.

    Attributes:
        candidate: what was measured.
        outcome: how it ended.
        key: hex, equal for equal programs: the digest of the loops that run, from whoever compiled it; empty where nobody did.
            Older records have one of the canonical numbers of what was their space then.
        latency: seconds of one call. For ``EARLY_STOPPED`` a lower bound; ``None`` for a failure.
        checked: whether the output was compared with the reference and found right and, where it claimed to be
            a new best, the latency is the one confirmed side by side. Only checked measurements can be the best.
        error: why it failed: one line, then details; empty for ``OK``.
        seconds: where the time went.
        version: the ansorlite that measured.
        when: start, as Unix time in seconds.
        machine: the name of the one that ran the program; empty: the one that wrote the record, or none did.
        peak: float32 operations a second that this machine was measured to do at that time; 0 where nobody measured that.
        reports: what an assembler said of each launch of a program for a GPU: registers, and bytes spilled. A database does not
            keep it, as building the program again gives it again.
        ours: whether this machine is known to have made the record, wherever the program ran. A database knows; it is no part of
            what was measured.
    """

    candidate: Candidate
    outcome: Outcome
    key: str = ""
    latency: float | None = None
    checked: bool = False
    error: str = ""
    seconds: Seconds = field(default_factory=Seconds)
    version: str = ""
    when: float = 0.0
    machine: str = ""
    peak: float = 0.0
    reports: tuple[Report, ...] = field(default=(), compare=False)
    ours: bool = field(default=False, compare=False)

    @property
    def here(self) -> bool:
        """Whether this machine is known to have run the program itself."""
        return self.ours and not self.machine

    @property
    def observation(self) -> Observation:
        """As a strategy is told of it."""
        return Observation(self.candidate, self.latency, self.outcome is Outcome.EARLY_STOPPED)

    @property
    def spilled(self) -> int:
        """Bytes that a thread stores and loads for want of registers, as far as an assembler told."""
        return sum(report.spilled for report in self.reports)

    @property
    def registers_wanted(self) -> float | None:
        """Registers that a thread would have if none were spilled, in the launch that takes most; ``None``: nobody told."""
        return max((report.registers + report.spilled / _BYTES_OF_SPILL for report in self.reports), default=None)

    @property
    def sound(self) -> bool:
        """Whether it says that the program ran, and was found right. It is believed if it was made :attr:`here`."""
        return self.outcome is Outcome.OK and self.checked and self.latency is not None


@dataclass(frozen=True)
class Record:
    """A measurement as it lies in a database.

    Attributes:
        id: its number in that database.
        task: key of the task.
        target: key of the target.
        measurement: what was measured.
        database: path of the database.
        seal: of the machine that measured it; see ``records/machine.py``.
    """

    id: int
    task: str
    target: str
    measurement: Measurement
    database: str
    seal: str = field(default="", compare=False)

    @property
    def command(self) -> tuple[str, ...]:
        """The command that does this measurement again, word by word."""
        return ("python", "-m", "ansorlite.measure.replay", self.database, str(self.id))
