"""The best program known of a task: from a database, else a default. What was compiled before is taken from a cache.

Latencies are believed that were taken on this machine. What another machine, or a file, says to be fast gets one timed turn
against the best program known here, and the result is kept.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from ansorlite import measure, search, sketch, visible
from ansorlite.best.defaults import Defaults
from ansorlite.best.keys import Identity, identity
from ansorlite.best.objects import Objects
from ansorlite.best.turns import Turn, Turns
from ansorlite.cache.disk import Cache, NoCache, default_cache
from ansorlite.errors import BrokenProgramWarning, MemoryLimitError, ProgramSizeError, TargetError, TuningError
from ansorlite.measure import replaying
from ansorlite.programs.kernels import abroad, kernel_of
from ansorlite.programs.packing import unpack
from ansorlite.records.database import Database
from ansorlite.records.hints import hints, promising
from ansorlite.records.measurement import Measurement, Outcome, Record
from ansorlite.runtime.abroad import KernelAbroad
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.version import __version__

if TYPE_CHECKING:
    from ansorlite.measure import Referee
    from ansorlite.spaces.builders import SpaceBuilder

T = TypeVar("T")

_log = visible.logger(__name__)

#: So many programs to compile are worth the start of other processes, which takes as long as some of them.
_MANY: Final = 12
#: Choosing a default program takes as long as compiling so many.
_CHOOSING: Final = 4
#: Steps that a statement writes out at most, in a program that takes the place of one too long to be compiled.
_FEW_STEPS: Final = 64

#: Seconds for the turns of all programs of a task that other machines recommend.
_TURNS: Final = 0.5


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
        kept = NoCache() if space is not None else default_cache() if cache is None else cache
        self._objects = Objects(kept)
        self._defaults = Defaults(kept, space)
        self._turns = Turns(kept, referee)
        self._records: dict[Identity, list[Record]] = {}
        self._judged: set[Identity] = set()
        self._stale: set[tuple[str, Candidate]] = set()
        self._elsewhere: set[str] = set()
        self._sources: dict[Identity, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._turns.close()

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
        origin, kernel = self._first(task, lambda made: kernel_of(task, unpack(self._packed(task, made)), made))
        self._objects.release(task, origin.candidate)
        self._sources[identity(task)] = self._source(task, origin)
        return kernel

    def abroad(self, task: Task) -> KernelAbroad:
        """The best program of ``task``, whose target is a machine that this one is not, compiled for that.

        What was checked and timed on such a machine counts; what is known only from others, after that; then the default.
        """
        origin, kernel = self._first(
            task, lambda made: abroad(task, unpack(self._packed(task, made)), made), self._ranking_abroad(task)
        )
        self._sources[identity(task)] = "by default" if origin.latency is None else "measured on such a machine"
        return kernel

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Choose and compile what :meth:`kernel` will be asked for: many programs in several processes at once."""
        if self._space is not None:
            return
        wanted: list[tuple[Task, Candidate | None]] = []
        for task in {identity(task): task for task in tasks}.values():
            wanted += [(task, self._known(task)), *((task, hint) for hint in self._hints(task))]
        missing = [(task, c) for task, c in wanted if c is None or self._objects.known(task, c) is None]
        work = sum(1 if candidate is not None else 1 + _CHOOSING for _, candidate in missing)
        processes = min(len(os.sched_getaffinity(0)), len(missing), work // (_MANY // 2))
        if work < _MANY or processes < 2:
            return
        for (task, candidate), built in zip(missing, measure.build_all(missing, processes), strict=True):
            # What took too long there, beside the others, is compiled here.
            if candidate is None and built is not None:
                self._defaults.remember(task, built.candidate)
            if isinstance(built, measure.Artifact):
                self._objects.add(task, built.candidate, built.code)
            elif isinstance(built, measure.Failure) and built.verdict.outcome is not Outcome.COMPILE_TIMEOUT:
                self._objects.fail(task, built.candidate, built.verdict.error)

    def warn(self) -> None:
        """Say, once for all tasks looked up so far, which records could not be used; to who listens, where programs come from."""
        if self._databases and self._sources:
            counts = Counter(self._sources.values())
            _log.info("where programs come from: %s", ", ".join(f"{count} {source}" for source, count in counts.items()))
        for database in self._databases:
            database.warn()
        if self._stale:
            _log.warning(
                "records that are no programs of their tasks (of another version or space, or changed by hand): %d; tune again",
                len(self._stale),
            )
        if self._elsewhere:
            machines = ", ".join(sorted(self._elsewhere))
            _log.warning("some tasks were measured on other machines only (%s); tune them here", machines)

    def _source(self, task: Task, origin: Origin) -> str:
        """Where a program comes from, for people."""
        if origin.latency is None:
            return "by default"
        records = [r for r in self._records.get(identity(task), ()) if r.measurement.candidate == origin.candidate]
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
            if candidate == NAIVE:
                yield from self._untried(task, here)
            yield Origin(candidate, measurement.latency)
        yield from self._by_default(task)

    def _untried(self, task: Task, here: Sequence[Measurement]) -> Iterator[Origin]:
        """The default program if it was never tried; if it was, and does not run, those of other sketches that were not."""
        tried, default = {m.candidate for m in here}, self._defaults.of(task)
        if default not in tried:
            yield Origin(default, None)
        elif not any(m.sound for m in here if m.candidate == default):
            yield from (origin for origin in self._by_default(task) if origin.candidate not in tried)

    def _by_default(self, task: Task) -> Iterator[Origin]:
        """The default program, a shorter one in case that is too long, those of other sketches, and the loops as written."""
        yield Origin(self._defaults.of(task), None)
        sketches = self._defaults.sketches(task)
        yield Origin(search.default_candidates(task, sketches, most_steps=_FEW_STEPS)[0], None)
        for candidate in search.default_candidates(task, sketches):
            yield Origin(candidate, None)

    def _ranking_abroad(self, task: Task) -> Iterator[Origin]:
        """The same by what other machines of the task's target have measured, the user's own before those of others."""
        sound = [m for m in self._measured(task) if m.sound and self._has(task, m.candidate)]
        for measurement in sorted(sound, key=lambda m: (not m.ours, m.latency or 0.0)):
            yield Origin(measurement.candidate, measurement.latency)
        yield from self._by_default(task)

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

    def _packed(self, task: Task, origin: Origin) -> bytes:
        return self._objects.packed(task, origin.candidate)

    def _warn_of(self, task: Task, candidate: Candidate, error: Exception) -> None:
        """Say that a program does not compile, and how to see it."""
        records = self._records.get(identity(task), ())
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
        if identity(task) not in self._records:
            self._records[identity(task)] = self._read(task)
        return [record.measurement for record in self._records[identity(task)]]

    def _read(self, task: Task) -> list[Record]:
        if not self._databases:
            return []
        records = [record for database in self._databases for record in database.records_of(task)]
        if not records:
            self._elsewhere.update(*(database.targets(task.key) for database in self._databases))
        if all(record.measurement.here for record in records):
            return records
        return [*records, *self._turns.kept(self._databases[0], task)]

    def _has(self, task: Task, candidate: Candidate) -> bool:
        """Whether the task has such a program, and the space, if one was given. What was compiled before is one of the task's."""
        inside = self._space is None or any(each.row_of(candidate) is not None for each in self._defaults.sketches(task))
        if inside and (candidate == NAIVE or self._objects.known(task, candidate) or sketch.is_program(task, candidate)):
            return True
        self._stale.add((task.key, candidate))
        return False

    def _known(self, task: Task) -> Candidate | None:
        """The best program of ``task`` known here, if it does not take a search to find it."""
        if any(m.here and m.sound for m in self._measured(task)):
            return next(self._ranking(task)).candidate
        return self._defaults.known(task)

    # What other machines recommend ---------------------------------------------------------------------------------

    def _hints(self, task: Task) -> list[Candidate]:
        """The programs that are to be tried because another machine found them fast."""
        if identity(task) in self._judged:
            return []
        return hints(self._measured(task), lambda candidate: self._has(task, candidate))

    def _judge(self, task: Task) -> None:
        """Give what other machines recommend a turn against the best program known here."""
        untried = self._hints(task)
        self._judged.add(identity(task))
        if not untried:
            return
        untried = promising(untried, self._measured(task), self._defaults.of(task))
        made: list[Measurement] = []
        spent, unit = 0.0, None
        try:
            best, rival = self._first(task, lambda origin: self._packed(task, origin)) if untried else (None, b"")
            for left, candidate in zip(range(len(untried), 0, -1), untried, strict=True):
                assert best is not None
                turn = self._turn(task, candidate, rival, (_TURNS - spent) / left)
                measurement = turn.measurement
                spent += measurement.seconds.run
                if turn.rival is not None and measurement.latency is not None:
                    if unit is None:
                        unit = best.latency or turn.rival
                        if best.latency is None:
                            made.append(_ok(best.candidate, turn.rival))
                    # All latencies of a task are in one unit, whatever the machine does meanwhile.
                    measurement = replace(measurement, latency=measurement.latency * unit / turn.rival)
                made.append(measurement)
        except TuningError as error:
            _log.warning("records of other machines are not used, as they cannot be tried: %s", error)
        self._records[identity(task)] += self._turns.keep(self._databases[0], task, made)

    def _turn(self, task: Task, candidate: Candidate, rival: bytes, seconds: float) -> Turn:
        """What became of a candidate beside the rival."""
        begin = time.time()
        try:
            program = self._objects.packed(task, candidate)
        except Exception as error:  # the same goes for a program that was measured here: see _first
            self._warn_of(task, candidate, error)
            return Turn(Measurement(candidate, Outcome.COMPILE_ERROR, error=str(error), version=__version__, when=begin), None)
        return self._turns.take(task, candidate, program, rival, seconds)


def _ok(candidate: Candidate, latency: float) -> Measurement:
    return Measurement(candidate, Outcome.OK, latency=latency, checked=True, version=__version__, when=time.time())
