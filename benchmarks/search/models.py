"""Cost models judged on recorded clouds: every model on every split of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ansorlite.dataset import SPLITS, Entry, judge
from ansorlite.dataset.judging import METRICS
from ansorlite.dataset.models import models
from ansorlite.errors import ArgumentError
from benchmarks.common.tables import DASH
from benchmarks.common.tables import Table as Grid
from benchmarks.search.entries import entry_of
from benchmarks.search.table import Kind, read, tables_in


@dataclass(frozen=True)
class Settings:
    """What the clouds are cut to, and how long neural models learn.

    Attributes:
        programs: of a task, at most.
        epochs: how often they are seen; ``None``: as often as the models' authors let them be.
        folds: of splits that have folds.
        seed: of everything that is drawn.
    """

    programs: int | None
    epochs: int | None
    folds: int
    seed: int


@dataclass(frozen=True)
class Row:
    """One model on one split.

    Attributes:
        mean: of each metric over tasks; ``None`` where it means nothing.
        top: TenSet's top 1 and top 5, summed over tasks.
        entries, programs: tasks judged by, and programs learnt from.
        seconds: of processor time, all folds together.
    """

    split: str
    model: str
    settings: Settings
    mean: Mapping[str, float | None]
    top: tuple[float, float]
    entries: int
    programs: float
    seconds: float


def entries(folder: Path, settings: Settings) -> list[Entry]:
    """The clouds in ``folder``."""
    return [entry_of(read(path), settings.programs, settings.seed) for path in tables_in(folder, Kind.CLOUD).values()]


def rows(known: Sequence[Row], clouds: Sequence[Entry], settings: Settings, names: Sequence[str], until: float) -> Iterator[Row]:
    """Judge what is not among ``known``; nothing is begun after ``until`` (``time.monotonic``)."""
    makers = models(settings.epochs)
    done = {(row.split, row.model) for row in known if row.settings == settings}
    for split, splitter in SPLITS.items():
        cuts = list(splitter(clouds, np.random.default_rng(settings.seed), settings.folds))
        for name in names:
            if not cuts or (split, name) in done or time.monotonic() >= until:
                continue
            begin = time.process_time()
            found = judge(makers[name], cuts, settings.seed)
            mean = {metric: None if math.isnan(value) else round(value, 4) for metric, value in found.mean.items()}
            top = (round(found.top[0], 4), round(found.top[1], 4))
            seconds = round(time.process_time() - begin, 1)
            yield Row(split, name, settings, mean, top, found.entries, found.programs, seconds)


def kept(path: Path) -> list[Row]:
    """The rows in a file of JSON lines; none if there is no such file.

    Raises:
        ArgumentError: a line is something else.
    """
    if not path.exists():
        return []
    try:
        return [_row(json.loads(line)) for line in path.read_text().splitlines()]
    except (ValueError, TypeError, KeyError) as error:
        raise ArgumentError(f"{path} is no file of judged models ({error}); delete it, and judge them again") from error


def _row(facts: dict[str, Any]) -> Row:
    return Row(**{**facts, "settings": Settings(**facts["settings"]), "top": tuple(facts["top"])})


def add(path: Path, row: Row) -> None:
    """Append to that file."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


#: What the reference says that a model is to show, of its row and those of others on the same split.
_PAIRWISE: Final = 0.75
_CLOSE: Final = 0.02
#: The metric that a tuner of one batch goes by.
BATCH: Final = "16 hold 95 %"


def tables(found: Sequence[Row]) -> list[tuple[str, Grid]]:
    """For the page, with titles: the rows of the newest settings, and what was to be shown."""
    if not found:
        return []
    settings = found[-1].settings
    newest = {(row.split, row.model): row for row in found if row.settings == settings}
    header = ("model", *METRICS, "top 1 of all", "top 5 of all", "tasks", "programs learnt from", "seconds")
    result = []
    for split in dict.fromkeys(split for split, _ in newest):
        body = tuple(
            (
                row.model,
                *(DASH if (value := row.mean.get(name)) is None else f"{value:.3f}" for name in METRICS),
                *(f"{value:.3f}" for value in row.top),
                str(row.entries),
                f"{row.programs:.0f}",
                f"{row.seconds:.0f}",
            )
            for (own, _), row in newest.items()
            if own == split
        )
        result.append((f"Cost models, split {split}", Grid(split, header, body)))
    most = "all" if settings.programs is None else f"at most {settings.programs}"
    epochs = "as many epochs as their authors" if settings.epochs is None else f"{settings.epochs} epochs"
    notes = (
        f"Of {most} programs of each cloud; neural models learnt for {epochs}; by_task has {settings.folds} folds. "
        "Means over tasks, but for *top k of all*, TenSet's: the sum of best seconds / the sum of the best of k. "
        "*16 hold 95 %* is the share of tasks of which a batch of 16 has 0.95 of the best speed. "
        "*RMSE* is of the share of the best speed, after the best straight line through the scores. "
        "A program that was stopped for being slow counts with what it took until then.",
    )
    claims = Grid("claims", ("to be shown", "found", ""), tuple(_claims(newest)), notes)
    return [*result, ("Cost models, what was to be shown", claims)]


def _claims(newest: Mapping[tuple[str, str], Row]) -> Iterator[tuple[str, str, str]]:
    def value(model: str, metric: str) -> float | None:
        row = newest.get(("by_task", model))
        return None if row is None else row.mean.get(metric)

    def told(text: str, ours: float | None, theirs: float | None, met: bool) -> Iterator[tuple[str, str, str]]:
        if ours is not None and theirs is not None:
            yield text, f"{ours:.3f} beside {theirs:.3f}", "met" if met else "missed"

    pairs, first, tokens, prior = (
        value("tenset-mlp", "pairwise"), value("tenset-mlp", "top 1"), value("tlp", "top 1"), value("draft", "top 1")
    )  # fmt: skip
    yield from told("by_task: TenSet's network orders 0.75 of pairs", pairs, _PAIRWISE, (pairs or 0.0) >= _PAIRWISE)
    yield from told("by_task: TenSet's network has a better top 1 than the draft", first, prior, (first or 0.0) > (prior or 0.0))
    once, first_batch = value("one-shot", BATCH), value("draft", BATCH)
    yield from told(
        "by_task: TLP is within 0.02 of TenSet's network in top 1", tokens, first, (tokens or 0.0) >= (first or 0.0) - _CLOSE
    )
    # That it does so more often than 64 programs at random needs clouds of far more than 64.
    yield from told(
        "by_task: 16 programs that the one-shot tuner likes have 0.95 of the best speed more often than the draft's",
        once,
        first_batch,
        (once or 0.0) > (first_batch or 0.0),
    )
