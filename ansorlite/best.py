"""The best program known of a task: from a database, else a default."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace

from ansorlite.codegen import build
from ansorlite.loops.nodes import Buffer, Scope
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.default import default_candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.program import lower
from ansorlite.sketch.state import Rule
from ansorlite.task import Task

_log = logging.getLogger(__name__)


def compile_candidate(
    task: Task, candidate: Candidate, rules: Sequence[Rule] | None = None, latency: float | None = None
) -> Kernel:
    """One program of ``task`` as a callable.

    Args:
        rules: the derivation rules that the candidate comes from; by default those of the target.
        latency: seconds that were measured of it, for people.

    Raises:
        TuningError: the task has no such program.
    """
    # The name becomes a symbol: no two programs of a model have the same.
    digest = hashlib.sha256(repr((task.key, task.target.key, candidate)).encode()).hexdigest()[:16]
    function = replace(lower(task, candidate, derive(task, rules)), name=f"kernel_{digest}")
    # The schedule may have merged dimensions of an argument; the caller's arrays have the task's.
    params = [Buffer(t.name, t.shape, t.dtype, Scope.ARGUMENT) for t in (*task.dag.inputs, *task.dag.outputs)]
    return Kernel(build(function, task.target), params, task.target, Origin(candidate, latency))


class Programs:
    """Looks programs up.

    Args:
        database: of measurements; ``None`` for default programs only.
        rules: the derivation rules; by default those of the target.
    """

    def __init__(self, database: Database | None, rules: Sequence[Rule] | None = None) -> None:
        self._database = database
        self._rules = rules
        self._stale = 0
        self._elsewhere: set[str] = set()

    def candidate(self, task: Task) -> Candidate:
        """The fastest checked program of ``task`` on its target, else the default one.

        The loops as written are not preferred to a default that was never tried. A record whose sketch the task no longer
        has, from another version, does not apply; :meth:`warn` says so.
        """
        return self._best(task).candidate

    def kernel(self, task: Task) -> Kernel:
        """The best program of ``task``, compiled."""
        origin = self._best(task)
        return compile_candidate(task, origin.candidate, self._rules, origin.latency)

    def _best(self, task: Task) -> Origin:
        sketches = derive(task, self._rules)
        default = default_candidate(task, sketches)
        measured = self._measured(task, {sketch.signature for sketch in sketches})
        ran = [m for m in measured if m.outcome is Outcome.OK and m.checked and m.latency is not None]
        best = min(ran, key=lambda m: m.latency or 0.0, default=None)
        if best is None or (best.candidate == NAIVE and all(m.candidate != default for m in measured)):
            return Origin(default, None)
        return Origin(best.candidate, best.latency)

    def warn(self) -> None:
        """Say, once for all tasks looked up so far, which records could not be used."""
        if self._stale:
            _log.warning("%d records of another version do not apply any more; tune again", self._stale)
        if self._elsewhere:
            machines = ", ".join(sorted(self._elsewhere))
            _log.warning("some tasks were measured on other machines only (%s); tune them here", machines)

    def _measured(self, task: Task, signatures: set[str]) -> list[Measurement]:
        """What the database knows of programs that ``task`` has."""
        if self._database is None:
            return []
        measured = [record.measurement for record in self._database.records(task.key, task.target.key)]
        known = [m for m in measured if m.candidate.sketch in signatures or m.candidate == NAIVE]
        self._stale += len(measured) - len(known)
        if not measured:
            self._elsewhere.update(self._database.targets(task.key))
        return known
