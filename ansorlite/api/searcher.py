"""Ranges of named knobs, constraints between them, and a callable that measures a setting, searched by any strategy: Paddle
CINN's tuner (design note of 2025; PaddlePaddle/Paddle PRs 64271 and 65059), with buckets of dynamic shapes."""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.api import makers
from ansorlite.api.checks import check_integer
from ansorlite.cost_model import GBDT
from ansorlite.errors import ArgumentError, RecordsError
from ansorlite.search import Observation, StrategyMaker
from ansorlite.search.knobs import Condition, KnobSpace, Setting, Value, problem_of
from ansorlite.search.protocol import Strategy
from ansorlite.writing import replacing

#: Of a setting and a size to seconds; ``None`` if that fails.
Measure: TypeAlias = Callable[[Setting, int], float | None]

#: Below each size the buckets are so wide; above the last as wide as there.
_WIDTHS: Final = ((128, 32), (512, 128), (1024, 256), (2048, 512))
_WIDEST: Final = 1024
#: This share of a score's times, at either end, does not count.
_TRIMMED: Final = 0.2


def bucket(size: int) -> tuple[int, int]:
    """The sizes, from the first to below the second, that share a setting with ``size``.

    >>> bucket(1), bucket(127), bucket(128), bucket(5000)
    ((0, 32), (96, 128), (128, 256), (4096, 5120))
    """
    width = next((width for below, width in _WIDTHS if size < below), _WIDEST)
    return size // width * width, size // width * width + width


@dataclass(frozen=True)
class SearchOption:
    """How to search. A limit of time and a target, which CINN's has besides, are for the callable that measures to have.

    Attributes:
        num_measure_trials: settings measured, for each bucket.
        repeat: so many sizes of a bucket, drawn by their weights, are measured for a score.
        strategy: a key of ``ansorlite.search.STRATEGIES``, or what makes one; "grid" is CINN's brute force.
        seed: of every random draw.
    """

    num_measure_trials: int = 64
    repeat: int = 5
    strategy: str | StrategyMaker = "grid"
    seed: int = 0


class ModelSearcher:
    """Finds a setting for each bucket of sizes.

    Args:
        measure: seconds of a setting at a size.
        candidate_range: the values of each knob.
        constraints: each of some knobs, which its parameters name.
        sizes: what sizes the dynamic dimension has, and how often each.

    Raises:
        ArgumentError: ranges, constraints or options that leave nothing to search.
    """

    def __init__(
        self,
        measure: Measure,
        candidate_range: Mapping[str, Sequence[Value]],
        constraints: Sequence[Condition] = (),
        sizes: Mapping[int, float] | None = None,
        option: SearchOption | None = None,
    ) -> None:
        option = option or SearchOption()
        check_integer("num_measure_trials", option.num_measure_trials, least=1)
        check_integer("repeat", option.repeat, least=1)
        self.space = KnobSpace(candidate_range, constraints)
        self._measure = measure
        self._sizes = dict(sizes or {1: 1.0})
        if not all(size >= 0 and weight > 0 for size, weight in self._sizes.items()):
            raise ArgumentError(f"the sizes are {self._sizes}; give sizes that are not below 0, with weights above 0")
        self._option = option
        self._maker = makers.STRATEGY.chosen(option.strategy)

    def search(self) -> Chosen:
        """Measure.

        Raises:
            ArgumentError: nothing runs in a bucket, or what measures gives something else than seconds.
        """
        found: dict[tuple[int, int], Setting] = {}
        streams = np.random.default_rng(self._option.seed).spawn(len({bucket(size) for size in self._sizes}))
        for (low, high), rng in zip(sorted({bucket(size) for size in self._sizes}), streams, strict=True):
            sizes = {size: weight for size, weight in self._sizes.items() if low <= size < high}
            found[low, high] = self._best((low, high), sizes, rng)
        return Chosen(found)

    def _best(self, bounds: tuple[int, int], sizes: Mapping[int, float], rng: np.random.Generator) -> Setting:
        weights = np.array(list(sizes.values())) / sum(sizes.values())
        drawn = rng.choice(list(sizes), size=self._option.repeat, p=weights).tolist()
        strategy: Strategy = makers.STRATEGY.checked(self._maker(problem_of(self.space), GBDT(), rng))
        best: tuple[float, Setting | None] = math.inf, None
        made = 0
        while made < self._option.num_measure_trials:
            batch = strategy.propose(min(8, self._option.num_measure_trials - made))
            if not batch:
                break
            made += len(batch)
            results: list[Observation] = []
            for candidate in batch:
                setting = json.loads(candidate.trace)
                score = self._score(setting, drawn)
                results.append(Observation(candidate, score))
                if score is not None and score < best[0]:
                    best = score, setting
            strategy.observe(results)
        if best[1] is None:
            raise ArgumentError(f"no setting runs for sizes from {bounds[0]} to below {bounds[1]}, of {made} that were measured")
        return best[1]

    def _score(self, setting: Setting, sizes: Sequence[int]) -> float | None:
        """The trimmed mean over sizes; ``None`` if one of them fails."""
        times: list[float] = []
        for size in sizes:
            seconds: object = self._measure(setting, size)
            if seconds is None:
                return None
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
                raise ArgumentError(f"measuring {dict(setting)} at size {size} gave {seconds!r}; it must give seconds, or None")
            times.append(float(seconds))
        cut = int(_TRIMMED * len(times))
        return statistics.fmean(sorted(times)[cut : len(times) - cut])


@dataclass(frozen=True)
class Chosen:
    """A setting for each bucket.

    Attributes:
        settings: by the first size of the bucket, and the first beyond it.
    """

    settings: Mapping[tuple[int, int], Setting]

    def at(self, size: int) -> Setting:
        """The setting for a size; of a bucket that was not searched, that of the next larger one, or of the largest.

        >>> Chosen({(0, 32): {"tile": 4}, (128, 256): {"tile": 16}}).at(40)
        {'tile': 16}
        """
        ordered = sorted(self.settings)
        return self.settings[next((bounds for bounds in ordered if size < bounds[1]), ordered[-1])]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`apply` reads."""
        rows = [{"from": low, "below": high, "setting": dict(setting)} for (low, high), setting in self.settings.items()]
        with replacing(Path(path)) as file:
            file.write_text(json.dumps(rows, indent=1) + "\n")


def apply(path: str | os.PathLike[str]) -> Chosen:
    """The settings in a file that :meth:`Chosen.save` wrote.

    Raises:
        RecordsError: it is not there, or is no such file.
    """
    try:
        rows: Any = json.loads(Path(path).read_text())
        settings = {(_size(row["from"]), _size(row["below"])): _setting(row["setting"]) for row in rows}
    except OSError as error:
        raise RecordsError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError):
        settings = {}
    if not settings:
        raise RecordsError(f"{path} holds no settings; give a file that Chosen.save wrote")
    return Chosen(settings)


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _setting(value: object) -> Setting:
    if not isinstance(value, dict) or not value or not all(isinstance(each, int | float | str) for each in value.values()):
        raise TypeError
    return value
