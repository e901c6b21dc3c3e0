"""The best program known of a task: from a database, else a default. What was compiled before is taken from a cache."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ansorlite import measure, sketch, visible
from ansorlite.codegen.object import Object
from ansorlite.loops.arguments import argument
from ansorlite.records.database import Database
from ansorlite.records.measurement import Measurement
from ansorlite.runtime import cache as caches
from ansorlite.runtime.build import build_candidate, pack, unpack
from ansorlite.runtime.cache import Cache, NoCache, default_cache
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task

if TYPE_CHECKING:
    from ansorlite.sketch.sketch import Sketch
    from ansorlite.sketch.state import Rule

_log = visible.logger(__name__)

#: So many programs to compile are worth the start of other processes, which takes as long as some of them.
_MANY: Final = 12
#: Choosing a default program takes as long as compiling so many.
_CHOOSING: Final = 4


def compile_candidate(task: Task, candidate: Candidate) -> Kernel:
    """One program of ``task`` as a callable.

    Raises:
        TuningError: the task has no such program.
    """
    return _kernel(task, build_candidate(task, candidate, sketch.derive(task)), Origin(candidate, None))


def _kernel(task: Task, compiled: Object, origin: Origin) -> Kernel:
    # The schedule may have merged dimensions of an argument; the caller's arrays have the task's.
    params = [argument(t) for t in (*task.dag.inputs, *task.dag.outputs)]
    return Kernel(compiled, params, task.target, origin)


class Programs:
    """Looks programs up, and compiles them.

    Args:
        database: of measurements; ``None`` for default programs only.
        rules: the derivation rules; by default those of the target. What comes from other rules is not cached: nothing says
            when those change.
        cache: of compiled programs; by default the user's.
    """

    def __init__(self, database: Database | None, rules: Sequence[Rule] | None = None, cache: Cache | None = None) -> None:
        self._database = database
        self._rules = rules
        self._cache = NoCache() if rules is not None else default_cache() if cache is None else cache
        self._chosen: dict[str, Origin] = {}
        self._built: dict[str, bytes] = {}
        self._stale = 0
        self._elsewhere: set[str] = set()
        self._derived: tuple[Task, tuple[Sketch, ...]] | None = None

    def candidate(self, task: Task) -> Candidate:
        """The fastest checked program of ``task`` on its target, else the default one.

        The loops as written are not preferred to a default that was never tried. A record whose sketch the task no longer
        has, from another version, does not apply; :meth:`warn` says so.
        """
        return self._best(task).candidate

    def kernel(self, task: Task) -> Kernel:
        """The best program of ``task``, compiled."""
        origin = self._best(task)
        key = _object_key(task, origin.candidate)
        known = self._object(key)
        if known is not None:
            del self._built[key]
            return _kernel(task, unpack(known), origin)
        compiled = build_candidate(task, origin.candidate, self._sketches(task))
        self._cache.put(key, pack(compiled))
        return _kernel(task, compiled, origin)

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Choose and compile what :meth:`kernel` will be asked for: many programs in several processes at once."""
        if self._rules is not None:
            return
        wanted = [(task, self._known(task)) for task in {task.key: task for task in tasks}.values()]
        missing = [(task, c) for task, c in wanted if c is None or self._object(_object_key(task, c)) is None]
        work = sum(1 if candidate is not None else 1 + _CHOOSING for _, candidate in missing)
        processes = min(len(os.sched_getaffinity(0)), len(missing), work // (_MANY // 2))
        if work < _MANY or processes < 2:
            return
        for (task, candidate), built in zip(missing, measure.build_all(missing, processes), strict=True):
            # What could not be compiled there is compiled here, where an error reaches the caller.
            if built is not None:
                if candidate is None:
                    self._chosen[task.key] = Origin(built.candidate, None)
                    self._remember(task, built.candidate)
                key = _object_key(task, built.candidate)
                self._built[key] = built.artifact
                self._cache.put(key, built.artifact)

    def _known(self, task: Task) -> Candidate | None:
        """The program of ``task``, if it does not take a search to find it."""
        if task.key not in self._chosen:
            measured = self._measured(task)
            default = None if measured else self._remembered(task)
            if not measured and default is None:
                return None
            self._chosen[task.key] = self._choose(task, measured) if default is None else Origin(default, None)
        return self.candidate(task)

    def _object(self, key: str) -> bytes | None:
        """What was compiled before, read from the cache once."""
        known = self._built.get(key) or self._cache.get(key)
        if known is not None:
            self._built[key] = known
        return known

    def _best(self, task: Task) -> Origin:
        if task.key not in self._chosen:
            self._chosen[task.key] = self._choose(task, self._measured(task))
        return self._chosen[task.key]

    def _choose(self, task: Task, measured: Sequence[Measurement]) -> Origin:
        # What this version has compiled before is a program that it has.
        fastest = _fastest(measured)
        if fastest is not None and fastest.candidate != NAIVE and self._object(_object_key(task, fastest.candidate)):
            return Origin(fastest.candidate, fastest.latency)
        signatures = {each.signature for each in self._sketches(task)} if measured else set()
        known = [m for m in measured if m.candidate.sketch in signatures or m.candidate == NAIVE]
        self._stale += len(measured) - len(known)
        best = _fastest(known)
        if best is not None and best.candidate != NAIVE:
            return Origin(best.candidate, best.latency)
        default = self._default(task)
        if best is None or all(m.candidate != default for m in known):
            return Origin(default, None)
        return Origin(best.candidate, best.latency)

    def _sketches(self, task: Task) -> tuple[Sketch, ...]:
        """Of the task asked about last they are kept: a program is chosen, then compiled."""
        if self._derived is None or self._derived[0] is not task:
            self._derived = task, sketch.derive(task, self._rules)
        return self._derived[1]

    def _default(self, task: Task) -> Candidate:
        known = self._remembered(task)
        if known is not None:
            return known
        default = sketch.default_candidate(task, self._sketches(task))
        self._remember(task, default)
        return default

    def _remembered(self, task: Task) -> Candidate | None:
        """The default program that was chosen before."""
        known = self._cache.get(_default_key(task))
        if known is None:
            return None
        signature, row = json.loads(known)
        return Candidate(signature, tuple(row))

    def _remember(self, task: Task, default: Candidate) -> None:
        self._cache.put(_default_key(task), json.dumps([default.sketch, default.row]).encode())

    def warn(self) -> None:
        """Say, once for all tasks looked up so far, which records could not be used."""
        if self._stale:
            _log.warning(
                "%d records of another version, or of rules that are not given, do not apply; give the rules, or tune again",
                self._stale,
            )
        if self._elsewhere:
            machines = ", ".join(sorted(self._elsewhere))
            _log.warning("some tasks were measured on other machines only (%s); tune them here", machines)

    def _measured(self, task: Task) -> list[Measurement]:
        """What the database knows of the task."""
        if self._database is None:
            return []
        measured = [record.measurement for record in self._database.records(task.key, task.target.key)]
        if not measured:
            self._elsewhere.update(self._database.targets(task.key))
        return measured


def _fastest(measured: Sequence[Measurement]) -> Measurement | None:
    return min((m for m in measured if m.sound), key=lambda m: m.latency or 0.0, default=None)


def _default_key(task: Task) -> str:
    return caches.key("default", task.key, task.target)


def _object_key(task: Task, candidate: Candidate) -> str:
    return caches.key("object", task.key, task.target, candidate)
