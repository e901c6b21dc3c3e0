"""Which programs a model learns from, and which it is judged by."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from ansorlite.dataset.entry import Entry

#: The share of a task's programs that a model learns from, where it is judged by the others of the same task.
_LEARNT: Final = 0.5


@dataclass(frozen=True)
class Split:
    """Programs to learn from, and programs to be judged by: no program is among both."""

    train: tuple[Entry, ...]
    test: tuple[Entry, ...]


#: What makes splits of entries; whatever it draws is drawn from the generator. The number is that of folds, at least 2.
Splitter: TypeAlias = Callable[[Sequence[Entry], np.random.Generator, int], Iterator[Split]]


def within_task(entries: Sequence[Entry], rng: np.random.Generator, _: int) -> Iterator[Split]:
    """One split: of each task, half of the programs at random are learnt from."""
    train: list[Entry] = []
    test: list[Entry] = []
    for entry in entries:
        chosen = rng.permutation(len(entry)) < round(_LEARNT * len(entry))
        for side, part in ((train, entry.take(chosen)), (test, entry.take(~chosen))):
            side += [] if part is None else [part]
    yield Split(tuple(train), tuple(test))


def by_task(entries: Sequence[Entry], rng: np.random.Generator, folds: int) -> Iterator[Split]:
    """As many splits as there are folds: tasks are shared among them at random, and judged by what was learnt of the others.

    With as many folds as tasks, or more, one task is left out at a time.
    """
    tasks = list(dict.fromkeys(entry.task.key for entry in entries))
    number = dict(zip(tasks, rng.permutation(len(tasks)) % folds, strict=True))
    yield from _left_out(entries, lambda entry: int(number[entry.task.key]))


def by_origin(entries: Sequence[Entry], _rng: np.random.Generator, _: int) -> Iterator[Split]:
    """A split for each origin, which is left out: with networks as origins, TenSet's split by network."""
    yield from _left_out(entries, lambda entry: entry.origin)


def by_device(entries: Sequence[Entry], _rng: np.random.Generator, _: int) -> Iterator[Split]:
    """A split for each device, which is left out."""
    yield from _left_out(entries, lambda entry: entry.device)


def _left_out(entries: Sequence[Entry], part: Callable[[Entry], Hashable]) -> Iterator[Split]:
    parts = [part(entry) for entry in entries]
    for left in dict.fromkeys(parts):
        test = tuple(entry for entry, own in zip(entries, parts, strict=True) if own == left)
        train = tuple(entry for entry, own in zip(entries, parts, strict=True) if own != left)
        if train:
            yield Split(train, test)


SPLITS: Final[Mapping[str, Splitter]] = {
    "within_task": within_task,
    "by_task": by_task,
    "by_origin": by_origin,
    "by_device": by_device,
}
