"""Tables: programs of one task, each measured once and for all, so that strategies and models can be judged without a machine.

A table is one ``.npz`` file of arrays and one text of JSON; nothing in it is ever unpickled or executed. It stands alone: what it
says of programs needs no derivation rules, and outlives a change of them. Features are in a file of their own beside it.
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.dataset.arrays import LARGEST, UnreadableError, stored
from ansorlite.errors import AnsorliteError
from ansorlite.records.measurement import Outcome
from ansorlite.writing import replacing

FORMAT: Final = 1
#: The outcomes by the number that stands for each in a table.
OUTCOMES: Final = tuple(Outcome)
_OK: Final = OUTCOMES.index(Outcome.OK)


class TableError(AnsorliteError, ValueError):
    """A table that cannot be read: damaged, of another format, or something else."""


class Kind(Enum):
    """What of a task a table has."""

    GRID = "grid"
    CLOUD = "cloud"
    FOREIGN = "foreign"


class HoleKind(Enum):
    """What the values of a hole are: tiles, numbers in their order, or names."""

    TILE = "tile"
    ORDINAL = "ordinal"
    CATEGORY = "category"


@dataclass(frozen=True)
class TableHole:
    """One decision.

    Attributes:
        values: what there is to choose; each the numbers that it consists of: the spans of a tile, one number otherwise.
        near: of each value, the positions of those one step away.
    """

    name: str
    kind: HoleKind
    values: tuple[tuple[float, ...], ...]
    near: tuple[tuple[int, ...], ...]

    @cached_property
    def coordinates(self) -> NDArray[np.float64]:
        """``(values, d)``: log2 of what a tile spans; ``sign(v) log2(1 + |v|)`` of numbers."""
        numbers = np.array(self.values, np.float64).reshape(len(self.values), -1 if self.values and self.values[0] else 0)
        return np.log2(numbers) if self.kind is HoleKind.TILE else np.sign(numbers) * np.log2(1 + np.abs(numbers))


@dataclass(frozen=True)
class TableSketch:
    """One shape of program.

    Attributes:
        signature: its name among those of the task.
        text: its trace, with holes.
        statements: how many statements its programs' features are of; 0 where there are none.
    """

    signature: str
    text: str
    holes: tuple[TableHole, ...]
    statements: int = 0


@dataclass(frozen=True)
class Meta:
    """What is said of a table as a whole.

    Attributes:
        kind: grid: every program of some values of some holes; cloud: programs from the whole space; foreign: of somebody else's.
        name: of the task, for people.
        task, dag: its key and computation (``te/serialize.py``); empty for what is foreign.
        target: the facts of the target (``dataclasses.asdict``); empty for what is foreign.
        machine: what it was measured on, and how busy that was.
        version: of the code that measured.
        protocol: how it was measured, and the trace of the reference program.
        features: the names of the features, in order.
        source, licence: where it is from, if not from here, and under what terms.
    """

    kind: Kind
    name: str
    sketches: tuple[TableSketch, ...]
    machine: str
    version: str = ""
    protocol: str = ""
    reference: str = ""
    task: str = ""
    dag: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    source: str = ""
    licence: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """Programs and what they took.

    Attributes:
        sketch: ``(n,)`` uint8.
        row: ``(n, holes)`` int16: of a grid and a foreign table, positions in the holes' values; of a cloud, a row of the
            sketch's whole space. -1 beyond the sketch's holes.
        key: ``(n,)`` uint64, equal for equal programs.
        seconds: ``(n,)`` float32: the median of the passes, in seconds of the reference's median; infinite for a failure.
        outcome: ``(n,)`` uint8: a position in :data:`OUTCOMES`. Of what was stopped for being slow, ``seconds`` is a lower bound.
        passes: ``(n, p)`` float32: the seconds of each pass, NaN where there was none.
        build, run: ``(n,)`` float32: seconds of compiling, and of running for time.
        knobs: ``(n, d)`` float16: coordinates in which near programs are similar; NaN beyond the sketch's.
        draft: ``(n,)`` float16: the draft's score; NaN where there is none.
        traces: of each row; empty for what is foreign.
        features: ``(n, S, F)`` float16, or ``None`` where they were not read or there are none.
    """

    meta: Meta
    sketch: NDArray[np.uint8]
    row: NDArray[np.int16]
    key: NDArray[np.uint64]
    seconds: NDArray[np.float32]
    outcome: NDArray[np.uint8]
    passes: NDArray[np.float32]
    build: NDArray[np.float32]
    run: NDArray[np.float32]
    knobs: NDArray[np.float16]
    draft: NDArray[np.float16]
    traces: tuple[str, ...] = ()
    features: NDArray[np.float16] | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """By row, what names the program: its trace; of what is foreign, its values."""
        return self.traces or tuple(map(self._named, self.sketch.tolist(), self.row.tolist()))

    def _named(self, sketch: int, row: list[int]) -> str:
        holes = self.meta.sketches[sketch].holes
        chosen = [f"{hole.name}={hole.values[value]}" for hole, value in zip(holes, row, strict=False)]
        return f"{self.meta.name}: {', '.join(chosen)}"

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The row of each of :attr:`names`."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def ran(self) -> NDArray[np.bool_]:
        """``(n,)``: whether the program ran to the end of its timing."""
        return np.asarray(self.outcome == _OK)

    @cached_property
    def best(self) -> float:
        """Seconds of the fastest program."""
        return float(self.seconds[self.ran].min())

    @property
    def noise(self) -> float:
        """The median of ``|ln(pass 1 / pass 2)|``: no smaller difference is one. NaN where nothing was measured twice."""
        if self.passes.shape[1] < 2:
            return math.nan
        twice = self.passes[np.isfinite(self.passes[:, :2]).all(axis=1)]
        return float(np.median(np.abs(np.log(twice[:, 0] / twice[:, 1])))) if len(twice) else math.nan


#: The columns: dtype, and number of dimensions.
_COLUMNS: Final[Mapping[str, tuple[str, int]]] = {
    "sketch": ("uint8", 1),
    "row": ("int16", 2),
    "key": ("uint64", 1),
    "seconds": ("float32", 1),
    "outcome": ("uint8", 1),
    "passes": ("float32", 2),
    "build": ("float32", 1),
    "run": ("float32", 1),
    "knobs": ("float16", 2),
    "draft": ("float16", 1),
}


def features_path(path: Path) -> Path:
    """Where the features of the table at ``path`` are."""
    return path.with_suffix(".features.npz")


def tables_in(folder: Path, kind: Kind) -> dict[str, Path]:
    """Where the tables of a kind are, by name."""
    paths = sorted((folder / kind.value).glob("*.npz"))
    features = {features_path(path) for path in paths}
    return {path.stem: path for path in paths if path not in features}


def write(table: Table, path: Path) -> None:
    """Put ``table`` at ``path``, whole or not at all, and its features beside it."""
    meta = {"format": FORMAT, **_plain(table.meta)}
    arrays = {name: np.asarray(getattr(table, name), dtype) for name, (dtype, _) in _COLUMNS.items()}
    text = np.frombuffer(lzma.compress("\0".join(table.traces).encode()), np.uint8)
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, meta=np.array(json.dumps(meta)), traces=text, **arrays)
    if table.features is not None:
        with replacing(features_path(path)) as part, part.open("wb") as file:
            np.savez_compressed(file, features=table.features.astype(np.float16))


def read(path: Path, *, features: bool = False) -> Table:
    """The table at ``path``; with its ``features``, where it has some.

    Raises:
        TableError: there is no such file, or it is no table, is damaged, or of another format.
    """
    arrays = _arrays(path, ("meta", "traces", *_COLUMNS))
    meta = _meta(arrays.pop("meta"), path)
    n = len(arrays["seconds"]) if arrays["seconds"].ndim else -1
    for name, (dtype, dimensions) in _COLUMNS.items():
        array = arrays[name]
        if array.dtype != dtype or array.ndim != dimensions or len(array) != n or not n:
            raise _damaged(path, f"its column {name!r} is {array.dtype}{list(array.shape)}, not {dtype} of {n} rows")
    traces = _traces(arrays.pop("traces"), path, n)
    table = Table(meta, traces=traces, **arrays)
    _check(table, path)
    if features and (beside := features_path(path)).exists():
        found = _arrays(beside, ("features",))["features"]
        if found.dtype != np.float16 or found.ndim != 3 or len(found) != n or not np.isfinite(found).all():
            raise _damaged(beside, f"its column 'features' is {found.dtype}{list(found.shape)}, not finite float16 of {n} rows")
        if found.shape[2] != len(meta.features):
            raise _damaged(
                beside, f"its column 'features' has {found.shape[2]} features, and the table names {len(meta.features)}"
            )
        if any(found.shape[1] < sketch.statements for sketch in meta.sketches):
            raise _damaged(beside, "its column 'features' has fewer statements than the table says")
        return Table(meta, traces=traces, features=found, **arrays)
    return table


def programs(path: Path) -> bytes:
    """All that the table at ``path`` says of its programs but their features.

    Raises:
        TableError: see :func:`read`.
    """
    table = read(path)
    meta = replace(table.meta, features=(), sketches=tuple(replace(sketch, statements=0) for sketch in table.meta.sketches))
    texts = (json.dumps(_plain(meta)), *table.traces)
    return b"".join(["\0".join(texts).encode(), *(getattr(table, name).tobytes() for name in _COLUMNS)])


def _damaged(path: Path, why: str) -> TableError:
    return TableError(f"the table {path} cannot be used: {why}; record or import it again")


def _arrays(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Those of the file that have these names; nothing is unpickled."""
    if not path.is_file():
        raise TableError(f"there is no table {path}; record or import it")
    try:
        return stored(path, names)
    except UnreadableError as error:
        raise _damaged(path, str(error)) from None


def _meta(array: NDArray[Any], path: Path) -> Meta:
    try:
        facts = json.loads(str(array))
        version = facts.pop("format")
    except (ValueError, KeyError, AttributeError, RecursionError, TypeError):
        raise _damaged(path, "its 'meta' is no JSON object with a format") from None
    if version != FORMAT:
        raise _damaged(path, f"it is of format {version!r}, and this version reads {FORMAT}")
    try:
        sketches = tuple(
            TableSketch(
                str(sketch["signature"]),
                str(sketch["text"]),
                tuple(map(_hole, sketch["holes"])),
                int(sketch.get("statements", 0)),
            )
            for sketch in facts.pop("sketches")
        )
        names = tuple(map(str, facts.pop("features")))
        return Meta(**{**facts, "kind": Kind(facts["kind"]), "sketches": sketches, "features": names})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"its 'meta' lacks something or has too much ({error})") from None


def _hole(facts: Mapping[str, Any]) -> TableHole:
    values = tuple(tuple(map(float, value)) for value in facts["values"])
    near = tuple(tuple(map(int, value)) for value in facts["near"])
    if len(near) != len(values) or not all(0 <= other < len(values) for each in near for other in each):
        raise ValueError(f"the values near those of hole {facts['name']!r}")
    if len({len(value) for value in values}) > 1 or not all(math.isfinite(number) for value in values for number in value):
        raise ValueError(f"the values of hole {facts['name']!r}")
    return TableHole(str(facts["name"]), HoleKind(facts["kind"]), values, near)


def _plain(meta: Meta) -> dict[str, Any]:
    """``meta`` as JSON has it."""
    holes = [
        [{"name": hole.name, "kind": hole.kind.value, "values": hole.values, "near": hole.near} for hole in sketch.holes]
        for sketch in meta.sketches
    ]
    sketches = [
        {"signature": sketch.signature, "text": sketch.text, "holes": each, "statements": sketch.statements}
        for sketch, each in zip(meta.sketches, holes, strict=True)
    ]
    return {**vars(meta), "kind": meta.kind.value, "sketches": sketches, "dag": dict(meta.dag), "target": dict(meta.target)}


def _traces(array: NDArray[Any], path: Path, n: int) -> tuple[str, ...]:
    try:
        if array.dtype != np.uint8 or array.ndim != 1:
            raise ValueError
        decompressor = lzma.LZMADecompressor()
        text = decompressor.decompress(array.tobytes(), max_length=LARGEST)
        if not decompressor.eof:
            raise ValueError
        traces = tuple(text.decode().split("\0")) if text else ()
        if len(traces) not in (0, n):
            raise ValueError
    except (lzma.LZMAError, EOFError, ValueError):
        raise _damaged(path, "its column 'traces' is damaged") from None
    return traces


def _check(table: Table, path: Path) -> None:
    """Whether the numbers can be what they are said to be."""
    meta = table.meta
    if not meta.sketches or (table.sketch >= len(meta.sketches)).any():
        raise _damaged(path, "its column 'sketch' names sketches that it does not have")
    for position, sketch in enumerate(meta.sketches):
        rows = table.row[table.sketch == position]
        holes = len(sketch.holes)
        if rows.shape[1] < holes or (rows[:, holes:] != -1).any() or (rows[:, :holes] < 0).any():
            raise _damaged(path, f"its column 'row' does not fit the holes of sketch {position}")
        sizes = np.array([len(hole.values) for hole in sketch.holes], np.int64)
        if meta.kind is not Kind.CLOUD and (rows[:, :holes] >= sizes).any():
            raise _damaged(path, f"its column 'row' has values that sketch {position} has not")
    if (table.outcome >= len(OUTCOMES)).any():
        raise _damaged(path, "its column 'outcome' has outcomes that there are not")
    timed = np.array([outcome.timed for outcome in OUTCOMES])[table.outcome]
    if not (table.seconds > 0).all() or (np.isfinite(table.seconds) != timed).any():
        raise _damaged(path, "its column 'seconds' has times that cannot be")
    if not table.ran.any():
        raise _damaged(path, "no program of it ran")
