"""Recording tables: programs of a task, measured by the tuner's own measurer, in turns with one reference program.

A latency is what the measurer says of a program beside the best program it knows, which begins with the reference: what else the
machine does meanwhile slows both. A grid is measured whole, in random order; then its better programs again in another order,
which tells the noise; then its best a third time. A cloud grows: what is there is a cloud, and more rows make it larger.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel
from ansorlite.errors import TuningError
from ansorlite.evolution import evolve, first_of_each, keys
from ansorlite.evolution.settings import EvolutionSettings
from ansorlite.features import NAMES, extract
from ansorlite.features.programs import ProgramSpace
from ansorlite.measure.settings import MeasureSettings
from ansorlite.platforms.table import platform_of
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.search import EvolutionarySearch, SearchProblem
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.serialize import dump
from ansorlite.tuner.cost_models import COST_MODELS
from ansorlite.tuner.loop import Measures
from ansorlite.tuner.measurers import MeasurerMaker
from ansorlite.version import __version__
from benchmarks.common.machine import cpu_name
from benchmarks.search.grid import Grid, grid, table_hole
from benchmarks.search.recording import Reading, Recording
from benchmarks.search.table import OUTCOMES, Kind, Meta, Table, TableHole, TableSketch

Rows = NDArray[np.int64]

#: Sketches of a grid.
_SKETCHES: Final = 2
#: Programs that one call of the measurer gets.
_BATCH: Final = 32
#: The share of a grid's programs, the better ones, that are measured a second time, and how many of the best a third time.
SECOND: Final = 0.25
THIRD: Final = 20
#: Trials of the search that says what is good, before a grid is chosen.
SEARCHED: Final = 64
#: Of a cloud, four kinds of programs come in turns: two uniform ones, one that the draft likes, one of a search.
_CYCLE: Final = ("uniform", "liked", "uniform", "searched")
#: A program that is so many times slower than the best is not timed to the end. More than in tuning: models learn of these too.
_SLOW: Final = 8.0
_PROTOCOL: Final = (
    "latency beside the best program so far, in turns, in seconds of the reference program; a random order for each pass; "
    "median of the passes"
)

_LIKED: Final = EvolutionSettings(population=1024, generations=3, keep=512)


def settings(builders: int) -> MeasureSettings:
    """How tables are measured: no failure ends a recording."""
    return MeasureSettings(slow_factor=_SLOW, identical_failures=10**9, builders=builders)


class Recorder:
    """Measures programs of one task, and keeps every reading.

    Args:
        until: the time, as ``time.monotonic`` tells it, after which no further batch begins.
    """

    def __init__(self, task: Task, recording: Recording, maker: MeasurerMaker, measure: MeasureSettings, until: float) -> None:
        self._task = task
        self.recording = recording
        self._maker = maker
        self._settings = measure
        self._until = until
        self._stack = ExitStack()

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self._until

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def measure(self, candidates: Sequence[Candidate], number: int, reference: Candidate) -> bool:
        """Measure those that pass ``number`` lacks; whether that was done before the time was up.

        Raises:
            TuningError: the reference does not run.
        """
        known = self.recording.of_pass(number)
        missing = [each for each in dict.fromkeys(candidates) if each.trace not in known]
        for begin in range(0, len(missing), _BATCH):
            if self.late:
                return False
            batch = missing[begin : begin + _BATCH]
            best = self._best(reference)
            for measurement in self._measurer.measure(self._task, batch, best):
                self._keep(measurement, number)
        return True

    @cached_property
    def _measurer(self) -> Measures:
        """Opened when there is something to measure: its workers take seconds to start."""
        return self._stack.enter_context(self._maker(self._task.target, self._settings))

    def _best(self, reference: Candidate) -> Measurement:
        """What the measurer compares with, to begin with."""
        first = self.recording.reference
        if first is None:
            (measurement,) = self._measurer.measure(self._task, [reference], None)
            self._keep(measurement, 0)
            first = self.recording.readings[0]
        if first.latency is None:
            raise TuningError(
                f"the reference program of {self._task.key} does not run ({first.outcome}); nothing can be compared"
            )
        candidate = Candidate(first.trace)
        return Measurement(candidate, Outcome.OK, latency=first.latency, checked=True)

    def _keep(self, measurement: Measurement, number: int) -> None:
        seconds = measurement.seconds
        load = os.getloadavg()[0]
        trace, outcome = measurement.candidate.trace, measurement.outcome
        self.recording.add(Reading(trace, number, outcome.value, measurement.latency, seconds.build, seconds.run, load))


def record_grid(task: Task, name: str, recorder: Recorder, limit: int, seed: int = 0, searched: int = SEARCHED) -> Table | None:
    """The grid of ``task``, of at most ``limit`` programs; ``None`` where the time was up before it was measured whole."""
    rng = np.random.default_rng(seed)
    sketches = derive(task)
    reference = default_candidate(task, sketches)
    model = COST_MODELS["own"]([task], rng)[0]
    problem = SearchProblem(tuple(map(ProgramSpace, sketches)))
    if not _searched(problem, model, recorder, reference, seed, searched):
        return None
    grids = _grids(task, sketches, recorder.recording, limit, rng)
    by_key: dict[tuple[int, bytes], Candidate] = {}
    for position, each in enumerate(grids):
        for row, key in zip(each.rows, each.keys, strict=True):
            by_key.setdefault((position, key), each.sketch.candidate(row))
    programs = list(by_key.values())
    for number in range(3):
        chosen = _again(programs, recorder.recording, number)
        order = np.random.default_rng([seed, number]).permutation(len(chosen))
        if not recorder.measure([chosen[at] for at in order], number, reference):
            return None
    holes = [tuple(table_hole(hole, kept) for hole, kept in zip(each.sketch.holes, each.values, strict=True)) for each in grids]
    rows = [(each.sketch, each.rows, each.small_rows(), holes[at], each.keys) for at, each in enumerate(grids)]
    traces = [[by_key[at, key].trace for key in each.keys] for at, each in enumerate(grids)]
    return _table(Kind.GRID, task, name, rows, traces, recorder.recording)


def _searched(problem: SearchProblem, model: CostModel, recorder: Recorder, reference: Candidate, seed: int, trials: int) -> bool:
    """Measure what a short search proposes: its programs say what values a grid should have."""
    strategy = EvolutionarySearch(problem, model, np.random.default_rng([seed, 9]))
    while True:
        # Proposals depend on what was measured: those of a recording that goes on are the same again.
        known = recorder.recording.of_pass(-1)
        batch: list[Candidate] = []
        made = 0
        while made < trials:
            batch = strategy.propose(min(16, trials - made))
            if not batch or not all(each.trace in known for each in batch):
                break
            strategy.observe([known[each.trace].observation for each in batch])
            made += len(batch)
        else:
            return True
        if not batch:
            return True
        if not recorder.measure(batch, -1, reference):
            return False
        strategy = EvolutionarySearch(problem, model, np.random.default_rng([seed, 9]))


def _grids(task: Task, sketches: Sequence[Sketch], recording: Recording, limit: int, rng: np.random.Generator) -> list[Grid]:
    """Grids of the sketches whose programs were fastest."""
    prior = platform_of(task.target).prior(task.target)
    searched = sorted(
        (each for each in recording.of_pass(-1).values() if each.outcome == Outcome.OK.value),
        key=lambda each: each.latency or 0.0,
    )
    found: list[list[tuple[int, ...]]] = [[] for _ in sketches]
    firsts: list[int] = []
    for reading in searched:
        for position, sketch in enumerate(sketches):
            row = sketch.row_of(Candidate(reading.trace))
            if row is not None:
                found[position].append(row)
                firsts.append(position)
                break
    chosen = list(dict.fromkeys([*firsts, *range(len(sketches))]))[:_SKETCHES]

    def made(position: int, share: int) -> Grid:
        sketch = sketches[position]
        rows = np.array(found[position], np.int64).reshape(-1, len(sketch.holes))
        return grid(sketch, lambda rows: prior(extract(sketch, rows)), rows, share, rng)

    return [made(position, limit // len(chosen)) for position in chosen]


def _again(programs: Sequence[Candidate], recording: Recording, number: int) -> list[Candidate]:
    """The programs that pass ``number`` measures."""
    if number == 0:
        return list(programs)
    first = recording.of_pass(0)
    ran = [each for each in programs if first[each.trace].outcome == Outcome.OK.value]
    ran.sort(key=lambda each: first[each.trace].latency or 0.0)
    return ran[: max(1, round(SECOND * len(programs)))] if number == 1 else ran[:THIRD]


def record_cloud(task: Task, name: str, recorder: Recorder, count: int, seed: int = 0) -> Table | None:
    """A cloud of ``task``: so many programs, those included that there were; fewer where the time is up or the space is small.

    ``None`` where none of them ran to the end of its timing: there is nothing to learn of those.
    """
    sketches = derive(task)
    reference = default_candidate(task, sketches)
    problem = SearchProblem(tuple(map(ProgramSpace, sketches)))
    model = COST_MODELS["own"]([task], np.random.default_rng(seed))[0]
    while len(known := recorder.recording.of_pass(0)) < count and not recorder.late:
        begin = len(known)
        batch = list(_cloud_batch(problem, model, task, list(known.values()), min(_BATCH, count - begin), [seed, begin]))
        if not batch or not recorder.measure(batch, 0, reference):
            break
    known = recorder.recording.of_pass(0)
    if not any(each.outcome == Outcome.OK.value for each in known.values()):
        return None
    rows: list[list[tuple[int, ...]]] = [[] for _ in sketches]
    traces: list[list[str]] = [[] for _ in sketches]
    for trace in known:
        found = problem.locate(Candidate(trace))
        if found is not None:  # else of a version whose rules were others
            rows[found[0]].append(found[1])
            traces[found[0]].append(trace)
    parts = []
    for sketch, each in zip(sketches, rows, strict=True):
        array = np.array(each, np.int64).reshape(-1, len(sketch.holes))
        holes = tuple(table_hole(hole, ()) for hole in sketch.holes)
        parts.append((sketch, array, array, holes, tuple(keys(TileSpace(sketch), array))))
    return _table(Kind.CLOUD, task, name, parts, traces, recorder.recording)


def _cloud_batch(
    problem: SearchProblem, model: CostModel, task: Task, known: Sequence[Reading], n: int, seed: list[int]
) -> Iterator[Candidate]:
    """The next ``n`` programs: of each kind in turns, none of them known."""
    rng = np.random.default_rng(seed)
    search = EvolutionarySearch(problem, model, rng)
    search.observe([each.observation for each in known])
    taken = [set(keys(each.space, _rows_in(each, known))) for each in problem.spaces]
    kinds = [_CYCLE[(len(known) + at) % len(_CYCLE)] for at in range(n)]
    yield from search.propose(kinds.count("searched"))
    prior = platform_of(task.target).prior(task.target)
    for kind in ("uniform", "liked"):
        shares = np.bincount(rng.integers(len(problem.spaces), size=kinds.count(kind)), minlength=len(problem.spaces))
        for each, seen, share in zip(problem.spaces, taken, shares.tolist(), strict=True):
            if not share:
                continue
            if kind == "liked":
                rows, _ = evolve(
                    each.space, lambda rows, each=each: prior(each.programs(rows).features), _none(each), _LIKED, rng, seen
                )
                rows = rows[np.sort(rng.permutation(len(rows))[:share])]
            else:
                rows = each.space.sample(4 * share + 16, rng)
                rows = rows[each.space.valid(rows)]
                rows = rows[first_of_each(keys(each.space, rows), set(seen))][:share]
            seen.update(keys(each.space, rows))
            yield from (each.candidate(tuple(row)) for row in rows.tolist())


def _none(space: ProgramSpace) -> Rows:
    return np.zeros((0, len(space.space.sizes)), np.int64)


def _rows_in(space: ProgramSpace, known: Sequence[Reading]) -> Rows:
    rows = [row for each in known if (row := space.row_of(Candidate(each.trace))) is not None]
    return np.array(rows, np.int64).reshape(-1, len(space.space.sizes))


def _table(
    kind: Kind,
    task: Task,
    name: str,
    parts: Sequence[tuple[Sketch, Rows, Rows, tuple[TableHole, ...], tuple[bytes, ...]]],
    traces: Sequence[Sequence[str]],
    recording: Recording,
) -> Table:
    """The table of the programs of ``parts``: each a sketch, whole rows, rows as the table has them, holes, keys."""
    prior = platform_of(task.target).prior(task.target)
    described = [extract(sketch, whole) for sketch, whole, *_ in parts]
    knobs = [TileSpace(sketch).embed(whole) for sketch, whole, *_ in parts]
    names = [trace for part in traces for trace in part]
    # Equal programs one after another: they are compressed to one.
    every = [(at, key) for at, (*_, part) in enumerate(parts) for key in part]
    order = np.array(sorted(range(len(every)), key=lambda place: every[place]), np.int64)
    rounds = [recording.of_pass(number) for number in range(1 if kind is Kind.CLOUD else 3)]
    first = [rounds[0][trace] for trace in names]
    passes = np.array([[_seconds(each.get(trace)) for each in rounds] for trace in names], np.float32)
    ok = np.array([each.outcome == Outcome.OK.value for each in first])
    bound = np.array([np.inf if each.latency is None else each.latency for each in first])
    seconds = np.where(ok, np.nanmedian(np.where(ok[:, None], passes, 1.0), axis=1), bound)
    reference = recording.readings[0]
    meta = Meta(
        kind,
        name,
        tuple(
            TableSketch(sketch.signature, sketch.text, holes, features.shape[1])
            for (sketch, _, _, holes, _), features in zip(parts, described, strict=True)
        ),
        machine=f"{cpu_name()}, {task.target.threads} thread{'s'[: task.target.threads > 1]}, median load {recording.load:.1f} "
        f"on {os.cpu_count()} cores",
        version=__version__,
        protocol=_PROTOCOL,
        reference=reference.trace,
        task=task.key,
        dag=dump(task.dag),
        target=asdict(task.target),
        features=NAMES,
    )
    return Table(
        meta,
        sketch=np.repeat(np.arange(len(parts)), [len(whole) for _, whole, *_ in parts]).astype(np.uint8)[order],
        row=_padded([small for _, _, small, *_ in parts], -1).astype(np.int16)[order],
        key=np.array([_number(at, key) for at, key in every], np.uint64)[order],
        seconds=seconds.astype(np.float32)[order],
        outcome=np.array([OUTCOMES.index(Outcome(each.outcome)) for each in first], np.uint8)[order],
        passes=passes[order],
        build=np.array([each.build for each in first], np.float32)[order],
        run=np.array([each.run for each in first], np.float32)[order],
        knobs=_padded(knobs, np.nan).astype(np.float16)[order],
        draft=np.concatenate([prior(each) for each in described]).astype(np.float16)[order],
        traces=tuple(names[at] for at in order),
        features=_padded(described, 0.0).astype(np.float16)[order],
    )


def _seconds(reading: Reading | None) -> float:
    ran = reading is not None and reading.outcome == Outcome.OK.value
    return reading.latency if ran and reading is not None and reading.latency is not None else np.nan


def _number(sketch: int, key: bytes) -> int:
    return int.from_bytes(hashlib.sha256(b"%d:" % sketch + key).digest()[:8], "little")


def _padded(parts: Sequence[NDArray[np.float64]] | Sequence[Rows], fill: float) -> NDArray[np.float64]:
    """The arrays one below another, each filled up on its second axis."""
    width = max(part.shape[1] for part in parts)
    rest = [[(0, 0), (0, width - part.shape[1]), *[(0, 0)] * (part.ndim - 2)] for part in parts]
    return np.concatenate(
        [np.pad(part.astype(np.float64), each, constant_values=fill) for part, each in zip(parts, rest, strict=True)]
    )


def path_of(folder: Path, kind: Kind, stem: str) -> Path:
    """Where a table is kept."""
    return folder / kind.value / f"{stem}.npz"
