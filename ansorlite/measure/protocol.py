"""What the tuner and its workers say to each other: JSON objects, one a line.

=============  =============================================================================================
tuner says     ``do``: ``start`` (once: purpose, target, settings), ``task`` (once a task), then jobs: ``build``,
               ``prepare``, ``run``, ``compare``, each with the number ``job`` and what its dataclass below holds
worker says    ``event``: ``ready`` (once, after its imports); ``running`` and ``checking`` (a job reaches that
               phase: each has a time limit of its own); ``done`` (the job's answer)
=============  =============================================================================================

Programs and arrays do not travel in messages: they lie in files of the tuner's private folder, which messages name.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from ansorlite.codegen.object import Report
from ansorlite.measure.settings import MeasureSettings
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target

Message: TypeAlias = dict[str, Any]

#: Bytes of a message between the tuner and the process that forks workers, at most.
FORK_MESSAGE: Final = 1 << 16


class Purpose(Enum):
    """What a worker is for: it imports what that needs before it is ready, for the time of its jobs is limited."""

    BUILD = "build"
    RUN = "run"


class Phase(Enum):
    """Where a worker is in its job. The value is the name of the event that begins it."""

    STARTING = "starting"
    WORKING = "ready"
    RUNNING = "running"
    CHECKING = "checking"


@dataclass(frozen=True)
class Build:
    """Lower and compile one candidate.

    Attributes:
        task: key of a task that was sent.
        candidate: which; ``None``: the default one, which the worker chooses and tells.
        artifact: file to write the program to.
    """

    task: str
    candidate: Candidate | None
    artifact: str


@dataclass(frozen=True)
class Prepare:
    """Make the inputs and the reference outputs of a task.

    Attributes:
        reference: file for the reference outputs, so that they outlive this worker.
    """

    task: str
    reference: str


@dataclass(frozen=True)
class Run:
    """Check and time one program.

    Attributes:
        artifact: its file.
        reference: the file that :class:`Prepare` wrote.
        best: latency in seconds beyond which (times a factor) it need not be timed to the end.
        rival: file of the best program so far, to be timed in turns with this one.
        once: whether a first call that is not short says enough.
    """

    task: str
    artifact: str
    reference: str
    best: float | None
    rival: str | None
    once: bool = False


@dataclass(frozen=True)
class Compare:
    """Check one program against another of its task that is believed to be right, and time both in turns.

    Attributes:
        artifact: file of the program.
        rival: file of the other one.
        seconds: to spend.
    """

    task: str
    artifact: str
    rival: str
    seconds: float


#: What a worker is asked to do.
Order: TypeAlias = Build | Prepare | Run | Compare


class Status(Enum):
    """How a job ended in a worker that lives."""

    OK = "ok"
    ERROR = "error"
    MEMORY = "memory"
    WRONG = "wrong"
    SLOW = "slow"


@dataclass(frozen=True)
class Answer:
    """What a worker says when a job is done.

    Attributes:
        seconds: of building or running.
        check_seconds: of comparing with the reference.
        latency: of one call, in seconds.
        candidate, key: what was built, and its program's key.
        rival: latency of the program that it was compared with, in seconds.
        reports: what an assembler said of the launches of what was built.
    """

    status: Status
    error: str = ""
    seconds: float = 0.0
    check_seconds: float = 0.0
    latency: float | None = None
    candidate: Candidate | None = None
    key: str = ""
    rival: float | None = None
    reports: tuple[Report, ...] = ()


def encode(message: Message) -> bytes:
    """One line."""
    return json.dumps(message).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The object on one line."""
    message: Message = json.loads(line)
    return message


def start_message(purpose: Purpose, target: Target, settings: MeasureSettings) -> Message:
    return {"do": "start", "purpose": purpose.value, "target": asdict(target), "settings": asdict(settings)}


def job_message(number: int, job: Order) -> Message:
    return {"do": type(job).__name__.lower(), "job": number, **asdict(job)}


def job_of(message: Message) -> Order:
    fields = {name: value for name, value in message.items() if name not in ("do", "job")}
    match message["do"]:
        case "build":
            return Build(**{**fields, "candidate": _candidate_of(fields["candidate"])})
        case "prepare":
            return Prepare(**fields)
        case "run":
            return Run(**fields)
        case "compare":
            return Compare(**fields)
        case other:
            raise ValueError(f"unknown job {other!r}")


def answer_message(job: int, answer: Answer) -> Message:
    return {"event": "done", "job": job, **asdict(answer), "status": answer.status.value}


def answer_of(message: Message) -> Answer:
    fields = {name: value for name, value in message.items() if name not in ("event", "job")}
    reports = tuple(Report(**each) for each in fields["reports"])
    of = {"status": Status(fields["status"]), "candidate": _candidate_of(fields["candidate"]), "reports": reports}
    return Answer(**{**fields, **of})


def _candidate_of(fields: Message | None) -> Candidate | None:
    return None if fields is None else Candidate(fields["trace"])
