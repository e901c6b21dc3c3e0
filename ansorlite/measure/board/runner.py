"""A board as a runner: programs are compiled and linked here, and run there."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from ansorlite.codegen import team
from ansorlite.codegen.machine import machine, optimise
from ansorlite.codegen.object import Object
from ansorlite.errors import AnsorliteError, TuningError
from ansorlite.export.link import link_loose
from ansorlite.measure.bench import Reference
from ansorlite.measure.board.bundle import BOOTSTRAP
from ansorlite.measure.board.check import OutputCheck
from ansorlite.measure.board.connection import Connection, DiedError, RubbishError, execnet_spec, number
from ansorlite.measure.check import tolerance
from ansorlite.measure.inputs import fills
from ansorlite.measure.limits import RunLimits, run_limits
from ansorlite.measure.local import LocalBuilder
from ansorlite.measure.pool import Death
from ansorlite.measure.protocol import Phase
from ansorlite.measure.roles import Artifact, LostError, Ran, Rival, Workers
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.turns import is_long
from ansorlite.measure.verdict import Verdict, run_verdict
from ansorlite.programs.packing import unpack
from ansorlite.records.measurement import Outcome
from ansorlite.runtime.team import spin
from ansorlite.target import Target
from ansorlite.task import Task

_VERDICTS: Final = {"error": Outcome.CRASH, "memory": Outcome.OUT_OF_MEMORY}


@dataclass(frozen=True)
class _Reference:
    """Of a task: whether its inputs are positive, their digest, and who checks outputs."""

    positive: bool
    inputs: str
    check: OutputCheck


@dataclass
class _Session:
    """A connection, and what the process at its other end has.

    Attributes:
        task: key of the task whose arrays it has.
        programs: numbers of those that it has loaded.
        jobs: how many programs it ran.
    """

    connection: Connection
    task: str = ""
    programs: list[int] = field(default_factory=list)
    jobs: int = 0


class BoardRunner:
    """A :class:`~ansorlite.measure.roles.Runner`: a board."""

    def __init__(
        self,
        address: str,
        target: Target,
        settings: MeasureSettings,
        expect: Callable[[Task], Reference],
        bootstrap: str = BOOTSTRAP,
    ) -> None:
        """Connect.

        Args:
            address: ``ssh://user@host`` or ``popen://python3``.
            expect: says what programs of a task are to compute.
            bootstrap: what the board executes first.

        Raises:
            TargetError: the address is neither.
            TuningError: the board cannot be reached.
        """
        self.machine = address
        self._spec = execnet_spec(address)
        self._target = target
        self._settings = settings
        self._bootstrap = bootstrap
        self._numbers = itertools.count(1)
        self._known: dict[tuple[str, str, str], int] = {}
        self._references: dict[str, _Reference] = {}
        self._expect = expect
        self._team = [] if target.threads == 1 else [self._linked_team()]
        self._session: _Session | None = None
        try:
            self._connected()
        except LostError as error:
            raise TuningError(f"the board {address} cannot be reached: {error}") from error

    def close(self) -> None:
        if self._session is not None:
            self._session.connection.close()
            self._session = None

    def revive(self) -> bool:
        try:
            self._connected()
        except LostError:
            return False
        return True

    def prepare(self, task: Task) -> None:
        if task.key in self._references:
            return
        positive, inputs, outputs = self._expect(task)
        hashed = hashlib.sha256()
        for array in inputs:
            hashed.update(array.tobytes())
        check = OutputCheck(task.dag, outputs, tolerance(task.dag))
        self._references[task.key] = _Reference(positive, hashed.hexdigest(), check)

    def run(self, task: Task, artifacts: Sequence[Artifact], rival: Rival | None) -> list[Ran]:
        self.prepare(task)
        return [self._run(task, artifact, rival) for artifact in artifacts]

    # One step each ------------------------------------------------------------------------------------------------

    def _run(self, task: Task, artifact: Artifact, rival: Rival | None) -> Ran:
        start, limits = time.perf_counter(), run_limits(self._settings, artifact, rival)
        session = self._connected()

        def failed(verdict: Verdict) -> Ran:
            return Ran(verdict, None, time.perf_counter() - start)

        try:
            return self._measured(session, task, artifact, limits, start)
        except DiedError as error:
            self.close()
            self._connected()  # else it is the board that is gone, not the program that is wrong
            return failed(
                run_verdict(Death(error.phase, error.timed_out, error.elapsed, f"its process on the board: {error}", ""))
            )
        except RubbishError as error:
            self.close()
            return failed(Verdict(Outcome.CRASH, str(error)))
        except _RefusedError as error:
            return failed(error.verdict)

    def _measured(self, session: _Session, task: Task, artifact: Artifact, limits: RunLimits, start: float) -> Ran:
        reference = self._reference(session, task)
        beat = limits.rival
        beside = beat is not None and beat.artifact.candidate != artifact.candidate
        keep = self._loaded(session, task, beat.artifact, 0) if beat is not None and beside else 0
        program = self._loaded(session, task, artifact, keep)
        session.jobs += 1
        phases = {"running": limits.seconds[Phase.RUNNING], "checking": limits.seconds[Phase.CHECKING]}
        question = reference.check.question()
        fields = {"key": task.key, "program": program, "question": asdict(question), **phases}
        asked = time.perf_counter()
        answer = _accepted(session.connection.ask("first", fields, limits.seconds))
        first = number(answer, "first", time.perf_counter() - asked)
        check_start = time.perf_counter()
        wrong = reference.check.wrong(question, answer.get("outputs"))
        check_seconds = time.perf_counter() - check_start
        if wrong:
            return Ran(Verdict(Outcome.WRONG_RESULT, wrong), None, check_start - start, check_seconds)
        if limits.once and is_long(first, self._settings):
            return Ran(Verdict(Outcome.OK), first, check_start - start, check_seconds)
        fields = {"program": program, "rival": keep, "first": first, "best": beat.now if beat else None, **phases}
        asked = time.perf_counter()
        answer = _accepted(session.connection.ask("time", fields, limits.seconds))
        slow = "slow" in answer
        # Turns are relative: the latency is in the rival's unit, which may be of a slower moment.
        most = max(time.perf_counter() - asked, first, beat.now if beat else 0.0)
        latency = number(answer, "slow" if slow else "latency", most)
        seconds = time.perf_counter() - start - check_seconds
        said = "far slower than the best; not timed to the end"
        return Ran(Verdict(Outcome.EARLY_STOPPED, said) if slow else Verdict(Outcome.OK), latency, seconds, check_seconds)

    def _reference(self, session: _Session, task: Task) -> _Reference:
        """The task's arrays are on the board, and are what they are here."""
        reference = self._references[task.key]
        if session.task != task.key:
            fields = {
                "key": task.key,
                "seed": self._settings.seed,
                "positive": reference.positive,
                "inputs": [[list(what.shape), what.dtype, what.low, what.high] for what in fills(task.dag)],
                "outputs": [[list(tensor.shape), tensor.dtype] for tensor in task.dag.outputs],
            }
            session.task, session.programs = "", []
            answer = _accepted(session.connection.ask("task", fields, self._limits))
            if answer.get("inputs") != reference.inputs:
                raise TuningError(
                    f"the inputs that {self.machine} makes are not those that are made here; "
                    f"install numpy {np.__version__} on the board"
                )
            session.task = task.key
        return reference

    def _loaded(self, session: _Session, task: Task, artifact: Artifact, keep: int) -> int:
        """The number of a program that the board has loaded.

        Args:
            keep: the number of one that must stay so.
        """
        name = (task.key, artifact.candidate.trace, hashlib.sha256(artifact.code).hexdigest())
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = next(self._numbers)
        if known not in session.programs:
            compiled = unpack(artifact.code)
            assert isinstance(compiled, Object), "boards have CPUs"
            symbols = [compiled.entry, compiled.repeat, *([compiled.prepare] if compiled.prepared else [])]
            fields = {
                "key": task.key,
                "program": known,
                "keep": keep,
                "code": link_loose(compiled.code, symbols, self._target),
                "entry": compiled.entry,
                "repeat": compiled.repeat,
                "prepare": compiled.prepare if compiled.prepared else "",
                "blocks": [max(compiled.workspace, compiled.prepare_workspace), compiled.prepared],
            }
            _accepted(session.connection.ask("load", fields, self._limits))
            # As the board does: it keeps this one, and the one to keep, or else the last.
            others = [keep] if keep in session.programs else session.programs[-1:]
            session.programs = [*others, known]
        return known

    @property
    def _limits(self) -> Mapping[Phase, float]:
        return dict.fromkeys(Phase, self._settings.prepare_seconds)

    def _connected(self) -> _Session:
        """A process on the board.

        Raises:
            LostError: none can be had.
        """
        if self._session is not None and self._session.jobs >= self._settings.recycle:
            self.close()
        if self._session is None:
            try:
                connection = Connection(self._spec, self._bootstrap)
                settings = {**asdict(self._settings), "memory_bytes": 0}
                connection.ask("start", {"settings": settings, "libraries": self._team}, self._limits)
            except (OSError, DiedError, RubbishError) as error:
                raise LostError(str(error)) from error
            self._session = _Session(connection)
        return self._session

    def _linked_team(self) -> bytes:
        code = machine(self._target).emit_object(optimise(team.text(self._target, spin()), self._target))
        return link_loose(code, [team.RUN, team.FORGET], self._target)


class _RefusedError(Exception):
    """The board says that it cannot do a job."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.error)
        self.verdict = verdict


def _accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """
    Raises:
        _RefusedError: the board could not do what it was asked.
        RubbishError: it says neither.
    """
    if answer["status"] == "ok":
        return answer
    if answer["status"] not in _VERDICTS:
        raise RubbishError(f"the board says {answer['status'][:80]!r}")
    raise _RefusedError(Verdict(_VERDICTS[answer["status"]], str(answer.get("error", ""))[:4000]))


def open_workers(address: str, target: Target, settings: MeasureSettings, bootstrap: str = BOOTSTRAP) -> Workers:
    """Builders here, and a board, or several that are equal with commas between their addresses.

    Raises:
        TargetError: an address that is none.
        TuningError: a board cannot be reached.
    """
    builder = LocalBuilder(target, settings)
    runners: list[BoardRunner] = []
    try:
        for one in address.split(","):
            runners.append(BoardRunner(one.strip(), target, settings, builder.reference, bootstrap))
        return Workers(builder, runners)
    except AnsorliteError:
        builder.close()
        for runner in runners:
            runner.close()
        raise
