"""Timing on a node of a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

import ray

from ansorlite import visible
from ansorlite.errors import TargetError, TuningError
from ansorlite.measure.cluster.actors import STOP, RunnerActor
from ansorlite.measure.cluster.engine import Cluster, GoneError, Node, kill, within
from ansorlite.measure.limits import run_limits
from ansorlite.measure.roles import Artifact, LostError, Ran, Rival
from ansorlite.measure.settings import MeasureSettings
from ansorlite.measure.verdict import Verdict
from ansorlite.records.measurement import Outcome
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.serialize import dump
from ansorlite.version import __version__

_log = visible.logger(__name__)

#: Seconds for an actor to start on its node, once all its cores are free, and for an answer beyond what the actor itself allows.
START: Final = 120.0
GRACE: Final = 30.0


class RayRunner:
    """A :class:`~ansorlite.measure.roles.Runner`: an actor to which all cores of its node belong.

    Attributes:
        machine: the cluster, the node's address, and its processor's name.
    """

    def __init__(self, cluster: Cluster, node: Node, taken: set[str], target: Target, settings: MeasureSettings) -> None:
        """
        Args:
            taken: identities of the nodes that runners of this cluster are on; this one's among them, from now on.

        Raises:
            TargetError: the node cannot run the target's code.
            LostError: it is gone, or others use it.
        """
        self._cluster = cluster
        self._node = node
        self._taken = taken
        self._target = target
        self._settings = settings
        self._tasks: set[str] = set()
        self._has: tuple[str, str] | None = None
        self._actor: Any = None
        self.machine = f"{cluster.address} {node.address}"
        taken.add(node.identity)
        try:
            processor, reason = self._started()
        except LostError:
            self.close()
            raise
        self.machine = f"{self.machine} {processor}"
        if reason:
            self.close()
            raise TargetError(f"{self.machine} cannot run code for {target.key}: {reason}")

    def _started(self) -> tuple[str, str]:
        """A new actor on the node; the processor's name, and what is in its way.

        Raises:
            LostError: none can be had.
        """
        self._tasks, self._has = set(), None
        given = (asdict(self._target), asdict(self._settings))
        try:
            self._actor = self._cluster.start(RunnerActor, self._node, float(self._node.cores), given)
        except GoneError as error:
            raise LostError(str(error)) from error
        facts = self._get(lambda: self._actor.facts.remote(), START, "not all its cores are free")
        processor, version, cores, niceness, reason = facts
        if version != __version__:
            return processor, f"ansorlite {version} is installed there; install {__version__}"
        if not reason and self._target.threads > cores:
            reason = f"they run on {self._target.threads} threads, and it has {cores} cores; give a target with fewer threads"
        if niceness > 0:
            _log.warning(
                "programs give way to whatever else runs on %s (niceness %d); start Ray there with RAY_worker_niceness=0",
                self._node.address,
                niceness,
            )
        return processor, reason

    def close(self) -> None:
        self._taken.discard(self._node.identity)
        if self._actor is not None:
            kill(self._actor)
            self._actor = None

    def revive(self) -> bool:
        if not self._cluster.reconnect():
            return False
        self.close()
        try:
            nodes = [node for node in self._cluster.nodes() if node.times and node.identity not in self._taken]
            # One that was started again has another identity, at the same address.
            same = [node for node in nodes if node.identity == self._node.identity]
            again = same or [node for node in nodes if node.address == self._node.address]
            if not again:
                return False
            self._node = again[0]
            self._taken.add(self._node.identity)
            _, reason = self._started()
        except (GoneError, LostError):
            self.close()
            return False
        return not reason

    def prepare(self, task: Task) -> None:
        seconds = self._settings.prepare_seconds + GRACE
        reason = self._get(lambda: self._actor.prepare.remote(task.key, self._dag(task)), seconds)
        self._tasks.add(task.key)
        if reason:
            raise TuningError(str(reason))

    def run(self, task: Task, artifacts: Sequence[Artifact], rival: Rival | None) -> list[Ran]:
        return [self._run(task, artifact, rival) for artifact in artifacts]

    def _run(self, task: Task, artifact: Artifact, rival: Rival | None) -> Ran:
        seconds = self._settings.prepare_seconds + sum(run_limits(self._settings, artifact, rival).seconds.values()) + GRACE
        beat = None
        if rival is not None:
            trace = rival.artifact.candidate.trace
            has = self._has == (task.key, trace)
            beat = (trace, None if has else rival.artifact.code, rival.now)
        given = (task.key, self._dag(task), artifact.candidate.trace, artifact.code, beat)
        outcome, error, latency, run, check = self._get(lambda: self._actor.run.remote(*given), seconds)
        self._tasks.add(task.key)
        if beat is not None:
            self._has = (task.key, beat[0])
        if outcome == STOP:
            raise TuningError(str(error))
        if latency is not None and not 0 < latency < math.inf:
            raise LostError(f"it says that a call takes {latency!r} seconds")
        return Ran(Verdict(Outcome(outcome), error), latency, run, check)

    def _dag(self, task: Task) -> dict[str, Any] | None:
        return None if task.key in self._tasks else dump(task.dag)

    def _get(self, ask: Callable[[], Any], seconds: float, perhaps: str = "") -> Any:
        """
        Args:
            perhaps: why there may be no answer.
        """
        if self._actor is None:
            raise LostError("it was given up")
        try:
            return within(seconds, lambda: ray.get(ask()))
        except GoneError as error:
            # What it is doing may still end: it must not be in the way of what is timed there next.
            kill(self._actor)
            raise LostError(f"{error}{f'; perhaps {perhaps}' if perhaps else ''}") from error
