"""Building on the spare cores of a cluster."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Final

from ansorlite.codegen.object import Report
from ansorlite.measure.cluster.actors import BuilderActor, BuiltData
from ansorlite.measure.cluster.engine import Cluster, GoneError, Node, first_line, kill, within
from ansorlite.measure.dispatch import Dispatcher, Station
from ansorlite.measure.roles import Artifact, Built, Failure
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import Verdict
from ansorlite.records.measurement import Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import dump
from ansorlite.version import __version__

#: Seconds for an answer beyond what the builder itself allows: it starts a process anew, and networks are slow.
GRACE: Final = 30.0
#: Seconds for a question to leave.
_ASK: Final = 20.0
#: So many actors build, at most: more than the tuner and its runners can keep up with (docs/clusters.md).
_MOST: Final = 256


class RayBuilder:
    """A :class:`~ansorlite.measure.roles.Builder`: an actor on each core of the nodes that do not time.

    Where there is none but those that time, it is on these, and all is built before the first program is given.
    """

    def __init__(self, cluster: Cluster, target: Target, settings: MeasureSettings) -> None:
        self._cluster = cluster
        self._given = (asdict(target), asdict(settings))
        self._generation = cluster.generation
        self._dispatcher = Dispatcher(self, settings.build_seconds + GRACE, settings.wait_seconds)
        self.aside = True
        self._dispatcher.hire()

    @property
    def size(self) -> int:
        return max(1, self._dispatcher.size)

    def close(self) -> None:
        self._dispatcher.close()
        self._cluster.close()

    def build(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        return self._dispatcher.build(task, candidates)

    def hire(self, stations: Sequence[Station]) -> Sequence[Station]:
        """See :class:`~ansorlite.measure.dispatch.Hiring`."""
        if not self._cluster.reconnect():
            return []
        if self._generation != self._cluster.generation:
            self._generation = self._cluster.generation
            self._dispatcher.forget()
            stations = []
        try:
            nodes = [node for node in self._cluster.nodes() if node.cores]
            others = [node for node in nodes if not node.times]
            known = Counter(station.node for station in stations if isinstance(station, _Actor))
            # Those that time have given all their cores to their runner, which rests while others build there.
            places = [(node, 1.0) for node in others] or [(node, 0.0) for node in nodes]
            wanted = [place for place in places for _ in range(place[0].cores - known[place[0]])][: _MOST - len(stations)]
            made = [_Actor(self._cluster, node, cores, self._given) for node, cores in wanted]
        except GoneError:
            return []
        self.aside = not any(node.times for node in (*known, *(node for node, _ in wanted)))
        return made


class _Actor:
    """A :class:`~ansorlite.measure.dispatch.Station`: one builder process behind an actor.

    Attributes:
        ready: never done while Ray finds no core for it.
    """

    def __init__(self, cluster: Cluster, node: Node, cores: float, given: tuple[dict[str, Any], dict[str, Any]]) -> None:
        """
        Raises:
            GoneError: the cluster is gone.
        """
        self.node = node
        self.ready: Future[None] = Future()
        self._tasks: set[str] = set()
        self._actor = cluster.start(BuilderActor, node, cores, given)
        within(_ASK, lambda: self._actor.version.remote().future()).add_done_callback(self._hello)

    def _hello(self, said: Future[str]) -> None:
        if (error := said.exception()) is not None:
            self.ready.set_exception(GoneError(f"{self.node.address}: {first_line(error)}"))
        elif (version := said.result()) != __version__:
            self.ready.set_exception(GoneError(f"{self.node.address} has ansorlite {version}; install {__version__} there"))
        else:
            self.ready.set_result(None)

    def ask(self, task: Task, candidate: Candidate) -> Future[Built]:
        answer: Future[Built] = Future()
        when = time.time()

        def done(said: Future[BuiltData]) -> None:
            if (error := said.exception()) is not None:
                answer.set_exception(GoneError(f"{self.node.address}: {first_line(error)}"))
                return
            match said.result():
                case (seconds, outcome, reason):
                    answer.set_result(Failure(candidate, Verdict(Outcome(outcome), reason), seconds, when))
                case (seconds, code, key, reports):
                    told = tuple(Report(*report) for report in reports)
                    answer.set_result(Artifact(candidate, code, seconds, when, key, told))

        dag = None if task.key in self._tasks else dump(task.dag)
        self._tasks.add(task.key)
        try:
            asked = within(_ASK, lambda: self._actor.build.remote(task.key, dag, candidate.trace).future())
        except GoneError as error:
            answer.set_exception(error)
        else:
            asked.add_done_callback(done)
        return answer

    def end(self) -> None:
        kill(self._actor)
