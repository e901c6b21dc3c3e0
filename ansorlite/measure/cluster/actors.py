"""What runs on a cluster's nodes: the local builder and the local runner, each in an actor. They answer with plain data."""

from __future__ import annotations

import os
import time
from dataclasses import astuple, replace
from typing import Any, Final, TypeAlias

from ansorlite import processor
from ansorlite.errors import AnsorliteError
from ansorlite.measure.local import LocalBuilder, LocalRunner
from ansorlite.measure.roles import Artifact, Failure, Rival
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import Verdict
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, obstacle
from ansorlite.task import Task
from ansorlite.te.serialize import load
from ansorlite.version import __version__

#: Seconds of building, the code, the program's key, and each report's numbers; or seconds, outcome and reason.
BuiltData: TypeAlias = tuple[float, bytes, str, list[tuple[int, int, int]]] | tuple[float, str, str]
#: Outcome, reason, latency, seconds of running and of checking.
RanData: TypeAlias = tuple[str, str, float | None, float, float]

#: The first word of an answer that ends the tuning.
STOP: Final = "stop"


class _Tasks:
    """Tasks by key, made of what came with the first question about each."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[str, Task] = {}

    def task(self, key: str, dag: dict[str, Any] | None) -> Task:
        if key not in self._known:
            assert dag is not None, "the first question about a task brings it"
            self._known[key] = Task(load(dag), self._target)
        return self._known[key]


class BuilderActor:
    """One builder process, on a spare core of some node. All tasks that it is asked of came in the order of the questions."""

    def __init__(self, target: dict[str, Any], settings: dict[str, Any]) -> None:
        facts = Target.of(target)
        self._tasks = _Tasks(facts)
        self._builder = LocalBuilder(facts, replace(MeasureSettings(**settings), builders=1))

    def version(self) -> str:
        """Of the package here; what goes between two versions may differ."""
        return __version__

    def build(self, key: str, dag: dict[str, Any] | None, trace: str) -> BuiltData:
        task = self._tasks.task(key, dag)
        (built,) = self._builder.build(task, [Candidate(trace)])
        if isinstance(built, Failure):
            return built.seconds, built.verdict.outcome.value, built.verdict.error
        return built.seconds, built.code, built.key, [astuple(report) for report in built.reports]


class RunnerActor:
    """The one that times on its node."""

    def __init__(self, target: dict[str, Any], settings: dict[str, Any]) -> None:
        self._target = Target.of(target)
        self._tasks = _Tasks(self._target)
        self._runner = LocalRunner(self._target, MeasureSettings(**settings))
        self._codes: dict[tuple[str, str], bytes] = {}

    def facts(self) -> tuple[str, str, int, int, str]:
        """The processor's name, the package's version, how many cores there are, how much this process gives way to others, and
        why the target's code cannot run; empty if it can."""
        cores, niceness = len(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0)
        return processor.name(), __version__, cores, niceness, obstacle(self._target) or ""

    def prepare(self, key: str, dag: dict[str, Any] | None) -> str:
        """Why the task cannot be measured; empty if it can."""
        try:
            self._runner.prepare(self._tasks.task(key, dag))
        except AnsorliteError as error:
            return str(error)
        return ""

    def run(
        self, key: str, dag: dict[str, Any] | None, trace: str, code: bytes, rival: tuple[str, bytes | None, float] | None
    ) -> RanData:
        """Check and time a program.

        Args:
            rival: trace, code if this actor does not have it, and seconds of a call here.
        """
        task = self._tasks.task(key, dag)
        beat = None
        if rival is not None:
            known = self._codes.get((key, rival[0])) if rival[1] is None else rival[1]
            assert known is not None, "a rival comes with its code, or was run here"
            beat = Rival(Artifact(Candidate(rival[0]), known, 0.0, 0.0), rival[2])
            self._codes = {(key, rival[0]): known}
        try:
            (ran,) = self._runner.run(task, [Artifact(Candidate(trace), code, 0.0, time.time())], beat)
        except AnsorliteError as error:
            return STOP, str(error), None, 0.0, 0.0
        self._codes[key, trace] = code
        verdict: Verdict = ran.verdict
        return verdict.outcome.value, verdict.error, ran.latency, ran.seconds, ran.check_seconds
