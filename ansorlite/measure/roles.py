"""Who builds programs and who runs them: what the measurer asks of each, wherever they are.

The tuner, its database and its strategies stay where the user is. A builder compiles candidates, on this machine or on others; a
runner is one machine that checks programs and times them, one after another. What goes between them is data: traces and machine
code one way, numbers and words the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ansorlite.codegen.object import Report
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import Verdict
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target
from ansorlite.task import Task


@dataclass(frozen=True)
class Artifact:
    """A program that compiled.

    Attributes:
        code: what the backend's ``build`` gave.
        seconds: of compiling.
        when: its start, Unix time.
        key: of the program, as its measurement's.
        reports: what an assembler said of its launches, where its builder asked one.
    """

    candidate: Candidate
    code: bytes
    seconds: float
    when: float
    key: str = ""
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True)
class Failure:
    """A candidate that did not compile.

    Attributes:
        verdict: what became of it, and why.
        seconds, when: as an :class:`Artifact`'s.
        lost: whether that is its machine's fault, as far as is known: it is gone.
    """

    candidate: Candidate
    verdict: Verdict
    seconds: float
    when: float
    lost: bool = False


Built: TypeAlias = Artifact | Failure


@dataclass(frozen=True)
class Rival:
    """The program to beat, which a runner has timed.

    Attributes:
        now: seconds of one call, as that runner timed it: what others are stopped early against.
    """

    artifact: Artifact
    now: float


@dataclass(frozen=True)
class Ran:
    """What a runner says of one program.

    Attributes:
        verdict: how it ended, and why.
        latency: seconds of one call; a lower bound for what was stopped early; ``None`` if it failed.
        seconds: of running and timing.
        check_seconds: of comparing with the reference.
        lost: as a :class:`Failure`'s.
    """

    verdict: Verdict
    latency: float | None
    seconds: float
    check_seconds: float = 0.0
    lost: bool = False


class LostError(Exception):
    """A runner's machine is gone, and what it was doing with it. What it says is the reason, for people."""


class Builder(Protocol):
    """Compiles candidates."""

    @property
    def size(self) -> int:
        """How many it compiles at once."""

    def build(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        """One result for each candidate, in order. Where it compiles on a machine that times, all are done before the first is
        given.

        Raises:
            TuningError: nothing can be compiled at all.
        """

    def close(self) -> None:
        """End it, whatever it does. Closing twice does nothing."""


class Ahead(Protocol):
    """Compiles programs of many tasks side by side, before anything is timed."""

    def each(self, programs: Sequence[tuple[Task, Candidate | None]]) -> Generator[tuple[int, Built], None, None]:
        """Each program, by its number, as it is done. Where there is no candidate, the default one is chosen; if that fails, its
        number does not come.

        Raises:
            TuningError: nothing can be compiled at all.
        """


class Runner(Protocol):
    """One machine on which programs are checked and timed."""

    @property
    def machine(self) -> str:
        """Its name, for people and records; empty: the one that the tuner runs on."""

    def prepare(self, task: Task) -> None:
        """Make the task's inputs and reference outputs, if they are not there.

        Raises:
            TuningError: the reference cannot be computed.
            LostError: the machine is gone.
        """

    def run(self, task: Task, artifacts: Sequence[Artifact], rival: Rival | None) -> list[Ran]:
        """Check each program and time it, in turns with the rival where it comes near it.

        Raises:
            TuningError: nothing can be run at all.
            LostError: the machine is gone.
        """

    def revive(self) -> bool:
        """Try to get a lost machine back; whether that worked. What it knew is forgotten."""

    def close(self) -> None:
        """End it, whatever it does. Closing twice does nothing."""


@dataclass(frozen=True)
class Workers:
    """Those of one measurer.

    Attributes:
        runners: one or more, of one kind of machine; the unit of all latencies is the first one's.
        ahead: compiles the first programs of many tasks, if something does.
    """

    builder: Builder
    runners: Sequence[Runner]
    ahead: Ahead | None = None


#: Opens the workers for programs of a target.
OpenWorkers: TypeAlias = Callable[[Target, MeasureSettings], Workers]
