"""What runs came to: a file of JSON lines. A run that is known is not made again, unless what made it has changed."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ansorlite.errors import AnsorliteError
from ansorlite.search import STRATEGIES
from ansorlite.tuner.presets import Preset
from ansorlite.writing import replacing
from benchmarks.search import source
from benchmarks.search.judge import Course
from benchmarks.search.table import features_path, programs

#: The rooms whose code decides what a strategy proposes; what else it imports does not.
_ROOMS: Final = ("ansorlite.search.", "ansorlite.evolution.", "ansorlite.cost_model.")
#: Where networks are; strategies that have one of their own import it from there, too.
_NEURAL: Final = "ansorlite.cost_model.neural."
#: Also in every digest: how a run goes, and what a table's space is.
_ALWAYS: Final = (
    "benchmarks.search.judge",
    "benchmarks.search.space",
    "benchmarks.search.measurer",
    "ansorlite.tuner.cost_models",
)
#: Tables of names import all there is: what a preset uses of them is looked up.
_TABLES: Final = ("ansorlite.search.strategies", "ansorlite.tuner.cost_models")
#: Cost models that look at another view of programs than features: these may be described anew.
_OTHER_VIEWS: Final = frozenset({"tlp", "mtl-tlp", "tree-lstm", "one-shot"})


@dataclass(frozen=True)
class Judged:
    """One run.

    Attributes:
        digest: of the table and of the code that made the run.
        made: trials made; fewer than asked for where the space was at its end.
        bests: the number of each trial that was faster than all before it, from 1, and its seconds.
        seconds: of processor time that the strategy took.
    """

    preset: str
    table: str
    seed: int
    trials: int
    digest: str
    made: int
    bests: tuple[tuple[int, float], ...]
    seconds: float

    @staticmethod
    def of(preset: str, table: str, seed: int, trials: int, digest: str, course: Course) -> Judged:
        """The run that went as ``course``."""
        bests: list[tuple[int, float]] = []
        for number, latency in enumerate(course.latencies, 1):
            if latency is not None and (not bests or latency < bests[-1][1]):
                bests.append((number, float(f"{latency:.7g}")))
        return Judged(preset, table, seed, trials, digest, len(course.latencies), tuple(bests), round(course.seconds, 3))


class Results:
    """The runs in a file."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            AnsorliteError: the file is there, but holds something else.
        """
        self._path = path
        self.rows: list[Judged] = []
        if path.exists():
            try:
                self.rows = [_judged(json.loads(line)) for line in path.read_text().splitlines()]
            except (TypeError, ValueError, KeyError):
                raise AnsorliteError(f"{path} does not hold results of this version; move it away") from None

    def add(self, row: Judged) -> None:
        """Keep a run; it is in the file when this returns."""
        self.rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def before(self, preset: str, table: str, trials: int, digest: str) -> list[Judged]:
        """The latest runs of a preset on a table that code of another digest made, all of one digest."""
        rows = [row for row in self.rows if (row.preset, row.table, row.trials) == (preset, table, trials)]
        others = [row for row in rows if row.digest != digest]
        return [row for row in others if row.digest == others[-1].digest]

    def renew(self, rows: Sequence[Judged], digests: Mapping[tuple[str, str], str]) -> None:
        """Let these runs count as made by the code of ``digests``, by preset and table."""
        renewed = {id(row) for row in rows}
        self._rewrite([replace(row, digest=digests[row.preset, row.table]) if id(row) in renewed else row for row in self.rows])

    def drop_superseded(self, digests: Collection[str]) -> int:
        """Forget runs that are not of ``digests``, where all those of one preset, table and code were made again since.

        While some were not, the others tell whether those would come to the same.

        Returns:
            how many.
        """
        latest = {(row.preset, row.table, row.trials, row.seed): row for row in self.rows}
        living = {(row.preset, row.table, row.trials, row.digest) for row in latest.values()}
        left = [row for row in self.rows if row.digest in digests or (row.preset, row.table, row.trials, row.digest) in living]
        dropped = len(self.rows) - len(left)
        if dropped:
            self._rewrite(left)
        return dropped

    def _rewrite(self, rows: list[Judged]) -> None:
        self.rows = rows
        with replacing(self._path) as part:
            part.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))

    @property
    def trials(self) -> set[int]:
        """Of how many trials there are runs."""
        return {row.trials for row in self.rows}

    def current(self, digests: Mapping[tuple[str, str], str], trials: int) -> dict[tuple[str, str], list[Judged]]:
        """By preset and table, the runs of so many trials whose digest is still that of ``digests``, one a seed.

        Presets of one digest do the same on a table, where there is one task: they share their runs.
        """
        found: dict[str, dict[int, Judged]] = {}
        for row in self.rows:
            if row.trials == trials:
                found.setdefault(row.digest, {})[row.seed] = row
        return {key: [found[own][seed] for seed in sorted(found[own])] for key, own in digests.items() if own in found}


def _judged(facts: dict[str, Any]) -> Judged:
    return Judged(**{**facts, "bests": tuple((int(number), float(seconds)) for number, seconds in facts["bests"])})


def digest(preset: Preset, table: Path) -> str:
    """Of all that a run of ``preset`` over ``table`` depends on."""
    whole = hashlib.sha256(repr((preset.strategy, preset.cost_model, preset.round)).encode())
    for name in sorted({*_ALWAYS, *_decide(preset)}):
        whole.update(source.code(name).encode())
    whole.update(_content(table, features=preset.cost_model not in _OTHER_VIEWS))
    return whole.hexdigest()[:16]


def is_neural(preset: Preset) -> bool:
    """Whether a neural network decides what ``preset`` measures: its runs take long."""
    return any(name.startswith(_NEURAL) for name in _decide(preset))


def _decide(preset: Preset) -> set[str]:
    """The modules that decide what ``preset`` proposes."""
    return _models(preset.cost_model).union(_reached(STRATEGIES[preset.strategy].__module__))


@functools.cache
def _content(table: Path, *, features: bool) -> bytes:
    if not features:
        return programs(table)
    beside = features_path(table)
    return table.read_bytes() + (beside.read_bytes() if beside.exists() else b"")


def _models(name: str) -> set[str]:
    """The modules of a cost model."""
    modules = {
        "shared": ["shared"],
        "family": ["shared"],
        "random": ["random"],
        "gbdt": ["gbdt"],
        "ranked": ["ranked"],
        "bounded": ["blend", "gbdt", "draft"],
        "own": ["blend", "gbdt", "draft"],
        "bagged": ["blend", "uncertain", "draft"],
        "forest": ["uncertain"],
        "draft": ["prior_only", "draft"],
        "tenset-mlp": ["shared", "neural.mlp"],
        "tlp": ["shared", "neural.tlp"],
        "mtl-tlp": ["shared", "neural.tlp"],
        "tree-lstm": ["shared", "neural.tree_lstm"],
        "one-shot": ["shared", "neural.one_shot"],
    }
    return set().union(*(_reached(f"ansorlite.cost_model.{each}") for each in modules[name]))


@functools.cache
def _reached(module: str) -> frozenset[str]:
    """The modules of the search that ``module`` imports, by way of others too, and itself."""
    found = {module}
    waiting = [module]
    while waiting:
        for name in _imports(waiting.pop()):
            if name not in found and name not in _TABLES and name.startswith(_ROOMS):
                found.add(name)
                waiting.append(name)
    return frozenset(found)


def _imports(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.text(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if _is_module(f"{node.module}.{alias.name}"))


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
