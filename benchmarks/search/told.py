"""Models that tell seconds, not only an order: Tiramisu's network beside the calibrated draft, on tasks that neither has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import neural
from ansorlite.cost_model.views import View
from ansorlite.dataset import Entry
from ansorlite.dataset.judging import scored
from ansorlite.dataset.splits import by_task
from ansorlite.platforms.table import platform_of
from benchmarks.common.tables import Table as Grid

Floats: TypeAlias = NDArray[np.float64]

NETWORK: Final = "Tiramisu's network"
DRAFT: Final = "the draft, calibrated"
CONSTANT: Final = "the median"


def experiment(clouds: Sequence[Entry], folds: int, seed: int, epochs: int | None) -> Grid:
    """The mean absolute error of predicted seconds, as a share of the true ones, of programs that ran; by task."""
    found: dict[str, list[float]] = {NETWORK: [], DRAFT: [], CONSTANT: []}
    for number, split in enumerate(by_task(clouds, np.random.default_rng(seed), folds)):
        network = neural.TreeLstm(np.random.default_rng([seed, number]), epochs)
        network.fit([group for entry in split.train for group in entry.groups(View.LOOPS)])
        known = np.concatenate([_log_seconds(entry) for entry in split.train])
        drafts = np.concatenate([_draft(entry) for entry in split.train])
        slope, offset = _line(drafts, known)
        for entry in split.test:
            true = np.exp(_log_seconds(entry))
            if not len(true):
                continue
            ran = np.isfinite(entry.latencies)
            told = {
                NETWORK: np.exp(-scored(network, entry)[ran]),
                DRAFT: np.exp(slope * _draft(entry) + offset),
                CONSTANT: np.full(len(true), np.exp(np.median(known))),
            }
            for name, seconds in told.items():
                found[name].append(float(np.mean(np.abs(seconds / true - 1.0))))
    means = {name: (float(np.mean(each)), float(np.median(each))) for name, each in found.items()}
    ours, theirs, constant = (means[name][1] for name in (NETWORK, DRAFT, CONSTANT))
    rows = [(name, f"{mean:.1%}", f"{median:.1%}") for name, (mean, median) in means.items()]
    notes = (
        f"{len(found[NETWORK])} tasks that were left out, in {folds} folds; the mean and the median over tasks. The draft is "
        "calibrated by one line from the logarithm of its estimate to that of seconds, over all tasks learnt from; the median is "
        "of their programs. What was stopped for being slow counts with what it took until then.",
        f"To be shown, of the medians: the network's error is below the draft's ({'met' if ours < theirs else 'missed'}), and at "
        f"most half of a constant's ({'met' if 2 * ours <= constant else 'missed'}).",
    )
    return Grid("seconds", ("told by", "mean error", "median error"), tuple(rows), notes)


def _log_seconds(entry: Entry) -> Floats:
    """``(ran,)``"""
    return np.log(entry.latencies[np.isfinite(entry.latencies)])


def _draft(entry: Entry) -> Floats:
    """``(ran,)``: the logarithm of the seconds that the draft estimates."""
    prior = platform_of(entry.task.target).prior(entry.task.target)
    return -np.concatenate([prior(group.features) for group in entry.groups(View.FEATURES)])[np.isfinite(entry.latencies)]


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    slope, offset = np.polyfit(x, y, 1)
    return float(slope), float(offset)
