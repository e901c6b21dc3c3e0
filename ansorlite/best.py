"""The best program known of a task: from a database, else a default. What was compiled before is taken from a cache.

Latencies are believed that were taken on this machine. What another machine, or a file, says to be fast gets one timed turn
against the best program known here, and the result is kept.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypeVar

from ansorlite import measure, programs, search, sketch, spaces, visible
from ansorlite.cache import disk as caches
from ansorlite.cache.disk import Cache, NoCache, default_cache
from ansorlite.errors import BrokenProgramWarning, MemoryLimitError, ProgramSizeError, RecordsError, TargetError, TuningError
from ansorlite.measure import replaying
from ansorlite.programs.kernels import abroad, kernel_of
from ansorlite.programs.packing import pack, unpack
from ansorlite.records.database import Database
from ansorlite.records.hints import hints, promising
from ansorlite.records.jsonlines import measurement_from, measurement_json
from ansorlite.records.measurement import Measurement, Outcome, Record, Seconds
from ansorlite.runtime.abroad import KernelAbroad
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.version import __version__

if TYPE_CHECKING:
    from ansorlite.measure import Referee
    from ansorlite.sketch.sketch import Sketch
    from ansorlite.spaces.builders import SpaceBuilder

T = TypeVar("T")

#: A task's key and names: a trace is of a task under its own names, while the key is that of all equal tasks.
Identity: TypeAlias = tuple[str, tuple[tuple[str, ...], ...]]

_log = visible.logger(__name__)

#: So many programs to compile are worth the start of other processes, which takes as long as some of them.
_MANY: Final = 12
#: Choosing a default program takes as long as compiling so many.
_CHOOSING: Final = 4

#: Seconds for the turns of all programs of a task that other machines recommend.
_TURNS: Final = 0.5


class _BrokenProgramError(Exception):
    """What a builder process says of a program that does not compile."""


class Programs:
    """Looks programs up, and compiles them. Use it as a context manager: leaving it ends the worker that compares programs.

    Args:
        databases: of measurements, and packs; none for default programs only. The first keeps what is measured by the way.
        space: of which programs are taken; by default any of the database, else those that the rules of the target derive. The
            default programs of another space are not cached: nothing says when that changes.
        cache: of compiled programs; by default the user's.
        referee: compares programs; by default in a worker process.
    """

    def __init__(
        self,
        databases: Database | Sequence[Database] | None,
        space: SpaceBuilder | None = None,
        cache: Cache | None = None,
        *,
        referee: Referee | None = None,
    ) -> None:
        self._databases = (databases,) if isinstance(databases, Database) else tuple(databases or ())
        self._space = space
        self._cache = NoCache() if space is not None else default_cache() if cache is None else cache
        self._referee = referee
        self._records: dict[Identity, list[Record]] = {}
        self._judged: set[Identity] = set()
        self._defaults: dict[Identity, Candidate] = {}
        self._built: dict[str, bytes] = {}
        self._broken: dict[str, str] = {}
        self._stale: set[tuple[str, Candidate]] = set()
        self._elsewhere: set[str] = set()
        self._sources: dict[Identity, str] = {}
        self._derived: tuple[Task, tuple[Sketch, ...]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._referee is not None:
            self._referee.close()

    def candidate(self, task: Task) -> Candidate:
        """The fastest program of ``task`` that was checked and timed on this machine, else the default one.

        The loops as written are not preferred to a default that was never tried. A record whose trace makes no program of the
        task does not apply; :meth:`warn` says so.
        """
        self._judge(task)
        return next(self._ranking(task)).candidate

    def kernel(self, task: Task) -> Kernel:
        """The best program of ``task``, compiled. Where that fails, the next best is taken, and a warning says so.

        Raises:
            TargetError: this machine cannot run programs for the task's target.
            MemoryLimitError: it has less memory than the outputs need.
        """
        self._judge(task)
        origin, kernel = self._first(task, lambda origin: kernel_of(task, unpack(self._packed(task, origin.candidate)), origin))
        self._built.pop(_object_key(task, origin.candidate), None)
        self._sources[_identity(task)] = self._source(task, origin)
        return kernel

    def abroad(self, task: Task) -> KernelAbroad:
        """The best program of ``task``, whose target is a machine that this one is not, compiled for that.

        What was checked and timed on such a machine counts; what is known only from others, after that; then the default.
        """
        origin, kernel = self._first(
            task, lambda made: abroad(task, unpack(self._packed(task, made.candidate)), made), self._ranking_abroad(task)
        )
        self._sources[_identity(task)] = "by default" if origin.latency is None else "measured on such a machine"
        return kernel

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Choose and compile what :meth:`kernel` will be asked for: many programs in several processes at once."""
        if self._space is not None:
            return
        wanted: list[tuple[Task, Candidate | None]] = []
        for task in {_identity(task): task for task in tasks}.values():
            wanted += [(task, self._known(task)), *((task, hint) for hint in self._hints(task))]
        missing = [(task, c) for task, c in wanted if c is None or self._object(_object_key(task, c)) is None]
        work = sum(1 if candidate is not None else 1 + _CHOOSING for _, candidate in missing)
        processes = min(len(os.sched_getaffinity(0)), len(missing), work // (_MANY // 2))
        if work < _MANY or processes < 2:
            return
        for (task, candidate), built in zip(missing, measure.build_all(missing, processes), strict=True):
            # What took too long there, beside the others, is compiled here.
            if isinstance(built, measure.Built):
                if candidate is None:
                    self._remember(task, built.candidate)
                key = _object_key(task, built.candidate)
                self._built[key] = built.artifact
                self._cache.put(key, built.artifact)
            elif built is not None and candidate is not None:
                self._broken[_object_key(task, candidate)] = built.error

    def warn(self) -> None:
        """Say, once for all tasks looked up so far, which records could not be used; to who listens, where programs come from."""
        if self._databases and self._sources:
            counts = Counter(self._sources.values())
            _log.info("where programs come from: %s", ", ".join(f"{count} {source}" for source, count in counts.items()))
        for database in self._databases:
            database.warn()
        if self._stale:
            _log.warning(
                "%d records are no programs of their tasks (of another version or space, or changed by hand); tune again",
                len(self._stale),
            )
        if self._elsewhere:
            machines = ", ".join(sorted(self._elsewhere))
            _log.warning("some tasks were measured on other machines only (%s); tune them here", machines)

    def _source(self, task: Task, origin: Origin) -> str:
        """Where a program comes from, for people."""
        if origin.latency is None:
            return "by default"
        records = [r for r in self._records.get(_identity(task), ()) if r.measurement.candidate == origin.candidate]
        others = [record.database for record in records if not record.measurement.here]
        return f"recommended by {others[0]}, which won a turn here" if others else "measured here"

    # The order of the programs of a task ---------------------------------------------------------------------------

    def _ranking(self, task: Task) -> Iterator[Origin]:
        """The programs of the task, the best first, and the loops as written at last. Some come twice."""
        here = [m for m in self._measured(task) if m.here]
        for measurement in sorted((m for m in here if m.sound), key=lambda m: m.latency or 0.0):
            candidate = measurement.candidate
            if not self._has(task, candidate):
                continue
            if candidate == NAIVE and all(m.candidate != self._default(task) for m in here):
                yield Origin(self._default(task), None)
            yield Origin(candidate, measurement.latency)
        yield Origin(self._default(task), None)
        for candidate in search.default_candidates(task, self._sketches(task)):
            yield Origin(candidate, None)

    def _ranking_abroad(self, task: Task) -> Iterator[Origin]:
        """The same by what other machines of the task's target have measured, the user's own before those of others."""
        sound = [m for m in self._measured(task) if m.sound and self._has(task, m.candidate)]
        for measurement in sorted(sound, key=lambda m: (not m.ours, m.latency or 0.0)):
            yield Origin(measurement.candidate, measurement.latency)
        yield Origin(self._default(task), None)
        for candidate in search.default_candidates(task, self._sketches(task)):
            yield Origin(candidate, None)

    def _first(self, task: Task, make: Callable[[Origin], T], ranking: Iterable[Origin] | None = None) -> tuple[Origin, T]:
        """The best program of the task that ``make`` does not fail for, and what it made.

        Args:
            ranking: the programs, the best first; by default as they are on this machine.
        """
        failed: set[Candidate] = set()
        for origin in self._ranking(task) if ranking is None else ranking:
            if origin.candidate in failed:
                continue
            try:
                return origin, make(origin)
            except (TargetError, MemoryLimitError):
                raise  # so would the others
            except Exception as error:
                if origin.candidate == NAIVE:
                    raise
                failed.add(origin.candidate)
                if isinstance(error, ProgramSizeError) and origin.latency is None:
                    # A limit, not a fault: how much a program unrolls to is known when it is compiled.
                    _log.info("the next best default program of task %r is taken: %s", task.key[:80], error)
                else:
                    self._warn_of(task, origin.candidate, error)
        raise AssertionError("the loops as written are among the programs of every task")

    def _warn_of(self, task: Task, candidate: Candidate, error: Exception) -> None:
        """Say that a program does not compile, and how to see it."""
        records = self._records.get(_identity(task), ())
        known = [record for record in records if record.measurement.candidate == candidate and record.id]
        command = replaying.command(task, candidate, str(error), known[0] if known else None)
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        warnings.warn(
            f"a program of task {task.key[:80]!r} does not compile, and the next best one is taken ({reason}); "
            f"please report what this shows: {command}",
            BrokenProgramWarning,
            stacklevel=2,
        )

    # What the database knows ---------------------------------------------------------------------------------------

    def _measured(self, task: Task) -> list[Measurement]:
        """What is known of the task."""
        if _identity(task) not in self._records:
            self._records[_identity(task)] = self._read(task)
        return [record.measurement for record in self._records[_identity(task)]]

    def _read(self, task: Task) -> list[Record]:
        if not self._databases:
            return []
        records = [record for database in self._databases for record in database.records_of(task)]
        if not records:
            self._elsewhere.update(*(database.targets(task.key) for database in self._databases))
        if all(record.measurement.here for record in records):
            return records
        return [*records, *self._turns(task)]

    def _has(self, task: Task, candidate: Candidate) -> bool:
        """Whether the task has such a program, and the space, if one was given. What was compiled before is one of the task's."""
        inside = self._space is None or any(each.row_of(candidate) is not None for each in self._sketches(task))
        if inside and (candidate == NAIVE or self._object(_object_key(task, candidate)) or sketch.is_program(task, candidate)):
            return True
        self._stale.add((task.key, candidate))
        return False

    # What other machines recommend ---------------------------------------------------------------------------------

    def _hints(self, task: Task) -> list[Candidate]:
        """The programs that are to be tried because another machine found them fast."""
        if _identity(task) in self._judged:
            return []
        return hints(self._measured(task), lambda candidate: self._has(task, candidate))

    def _judge(self, task: Task) -> None:
        """Give what other machines recommend a turn against the best program known here."""
        untried = self._hints(task)
        self._judged.add(_identity(task))
        if not untried:
            return
        untried = promising(untried, self._measured(task), self._default(task))
        made: list[Measurement] = []
        spent, unit = 0.0, None
        try:
            best, rival = self._first(task, lambda origin: self._packed(task, origin.candidate)) if untried else (None, b"")
            for left, candidate in zip(range(len(untried), 0, -1), untried, strict=True):
                assert best is not None
                measurement, rival_latency = self._turn(task, candidate, rival, (_TURNS - spent) / left)
                spent += measurement.seconds.run
                if rival_latency is not None and measurement.latency is not None:
                    if unit is None:
                        unit = best.latency or rival_latency
                        if best.latency is None:
                            made.append(_ok(best.candidate, rival_latency))
                    # All latencies of a task are in one unit, whatever the machine does meanwhile.
                    measurement = replace(measurement, latency=measurement.latency * unit / rival_latency)
                made.append(measurement)
        except TuningError as error:
            _log.warning("records of other machines are not used, as they cannot be tried: %s", error)
        self._keep(task, made)

    def _turn(self, task: Task, candidate: Candidate, rival: bytes, seconds: float) -> tuple[Measurement, float | None]:
        """What became of a candidate, and the latency of the program that it was compared with."""
        begin = time.time()
        try:
            program = self._packed(task, candidate)
        except Exception as error:  # the same goes for a program that was measured here: see _first
            self._warn_of(task, candidate, error)
            failed = Measurement(candidate, Outcome.COMPILE_ERROR, error=str(error), version=__version__, when=begin)
            return failed, None
        self._referee = self._referee or measure.Referee()
        turn = self._referee.compare(task, program, rival, max(seconds, 0.0))
        measurement = Measurement(
            candidate,
            turn.verdict.outcome,
            latency=turn.latency,
            checked=turn.verdict.outcome is Outcome.OK,
            error=turn.verdict.error,
            seconds=Seconds(run=turn.seconds),
            version=__version__,
            when=begin,
        )
        return measurement, turn.rival

    def _keep(self, task: Task, made: Sequence[Measurement]) -> None:
        """Know what was measured here, also the next time."""
        first = self._databases[0]
        path = str(first.path)
        records = [Record(0, task.key, task.target.key, replace(measurement, ours=True), path) for measurement in made]
        if first.machine.kept:
            try:
                for measurement in made:
                    first.add(task, measurement)
            except RecordsError:  # it may only be read, say
                kept = [*self._turns(task), *records]
                self._cache.put(_turns_key(task), json.dumps([measurement_json(record) for record in kept]).encode())
        self._records[_identity(task)] += records

    def _turns(self, task: Task) -> list[Record]:
        """What was measured here, but could not be written to the database."""
        path = str(self._databases[0].path)
        try:
            known = json.loads(self._cache.get(_turns_key(task)) or b"[]")
            measured = [measurement_from(value, path) for value in known]
        except (ValueError, RecordsError):
            return []
        return [Record(0, task.key, task.target.key, replace(measurement, ours=True), path) for measurement in measured]

    # Compiled programs ---------------------------------------------------------------------------------------------

    def _packed(self, task: Task, candidate: Candidate) -> bytes:
        """The program, compiled now or before."""
        key = _object_key(task, candidate)
        if key in self._broken:
            raise _BrokenProgramError(self._broken[key])
        known = self._object(key)
        if known is None:
            known = pack(programs.build_candidate(task, candidate))
            self._built[key] = known
            self._cache.put(key, known)
        return known

    def _object(self, key: str) -> bytes | None:
        """What was compiled before, read from the cache once."""
        known = self._built.get(key) or self._cache.get(key)
        if known is not None:
            self._built[key] = known
        return known

    def _known(self, task: Task) -> Candidate | None:
        """The best program of ``task`` known here, if it does not take a search to find it."""
        if any(m.here and m.sound for m in self._measured(task)):
            return next(self._ranking(task)).candidate
        return self._remembered(task)

    def _sketches(self, task: Task) -> tuple[Sketch, ...]:
        """Of the task asked about last they are kept: a program is chosen, then compiled."""
        if self._derived is None or self._derived[0] is not task:
            self._derived = task, spaces.sketches_of(task, self._space or spaces.Derived())
        return self._derived[1]

    def _default(self, task: Task) -> Candidate:
        known = self._remembered(task)
        if known is not None:
            return known
        default = search.default_candidate(task, self._sketches(task))
        self._remember(task, default)
        return default

    def _remembered(self, task: Task) -> Candidate | None:
        """The default program that was chosen before."""
        if _identity(task) not in self._defaults:
            known = self._cache.get(_default_key(task))
            if known is None:
                return None
            self._defaults[_identity(task)] = Candidate(known.decode())
        return self._defaults[_identity(task)]

    def _remember(self, task: Task, default: Candidate) -> None:
        self._defaults[_identity(task)] = default
        self._cache.put(_default_key(task), default.trace.encode())


def _ok(candidate: Candidate, latency: float) -> Measurement:
    return Measurement(candidate, Outcome.OK, latency=latency, checked=True, version=__version__, when=time.time())


def _identity(task: Task) -> Identity:
    return task.key, task.dag.names


def _default_key(task: Task) -> str:
    return caches.key("default", *_identity(task), task.target)


def _turns_key(task: Task) -> str:
    return caches.key("turns", *_identity(task), task.target)


def _object_key(task: Task, candidate: Candidate) -> str:
    return caches.key("object", *_identity(task), task.target, candidate)
