"""How good cost models are on splits of a data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel
from ansorlite.cost_model.metrics import (
    mean_peak,
    pairwise_accuracy,
    peak_score,
    rank_correlation,
    recall,
    root_mean_square_error,
)
from ansorlite.cost_model.protocol import predicted
from ansorlite.cost_model.views import view_of
from ansorlite.dataset.entry import Entry, Floats
from ansorlite.dataset.splits import Split

#: Makes a model for an entry's device, of all random draws' generator. It learns nothing of the entry.
ModelMaker: TypeAlias = Callable[[Entry, np.random.Generator], CostModel]
#: Of scores and latencies in seconds, both ``(n,)``.
Metric: TypeAlias = Callable[[Floats, Floats], float]

#: By name: of the programs of one task.
METRICS: Final[Mapping[str, Metric]] = {
    "Spearman": rank_correlation,
    "pairwise": pairwise_accuracy,
    "top 1": lambda scores, latencies: peak_score(scores, latencies, 1),
    "top 5": lambda scores, latencies: peak_score(scores, latencies, 5),
    "TenSet's peak@5": lambda scores, latencies: mean_peak(scores, latencies, 5),
    "recall of 10": lambda scores, latencies: recall(scores, latencies, 10),
    "16 hold 95 %": lambda scores, latencies: float(peak_score(scores, latencies, 16) >= 0.95),
    "RMSE": root_mean_square_error,
}


@dataclass(frozen=True)
class Scores:
    """How good a model is.

    Attributes:
        mean: of each of :data:`METRICS` over entries, those left out where it means nothing; NaN if it does for none.
        top: TenSet's top 1 and top 5: the sum of tasks' best seconds / that of the best among those of the highest scores.
        entries: how many it was judged by.
        programs: how many it learnt from, the mean over splits.
    """

    mean: Mapping[str, float]
    top: tuple[float, float]
    entries: int
    programs: float


def judge(make: ModelMaker, splits: Sequence[Split], seed: int) -> Scores:
    """Fit a new model on each split, and judge it by the programs that it has not seen.

    Models of one split are made anew for each device alone; those of one device share what was learnt.
    """
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    best, found = 0.0, np.zeros(2)
    entries, learnt = 0, []
    for number, split in enumerate(splits):
        models: dict[str, CostModel] = {}
        for entry in split.test:
            if not np.isfinite(entry.latencies).any():
                continue
            if entry.device not in models:
                models[entry.device] = make(entry, np.random.default_rng([seed, number]))
                view = view_of(models[entry.device])
                models[entry.device].fit([group for each in split.train for group in each.groups(view)])
                learnt.append(sum(map(len, split.train)))
            scores = scored(models[entry.device], entry)
            entries += 1
            for name, metric in METRICS.items():
                values[name].append(metric(scores, entry.latencies))
            best += float(entry.latencies.min())
            found += [_least(scores, entry.latencies, k) for k in (1, 5)]
    mean = {name: _mean(each) for name, each in values.items()}
    top = (float(best / found[0]), float(best / found[1])) if entries else (math.nan, math.nan)
    return Scores(mean, top, entries, float(np.mean(learnt)) if learnt else 0.0)


def scored(model: CostModel, entry: Entry) -> Floats:
    """``(n,)``: the scores of all programs, part by part."""
    view = view_of(model)
    return np.concatenate([predicted(model, group.features) for group in entry.groups(view)])


def _least(scores: Floats, latencies: Floats, k: int) -> float:
    """Seconds of the fastest among the ``k`` of the highest score; of the slowest of all where none of them ran."""
    found = latencies[np.argsort(-scores, kind="stable")[:k]].min()
    return float(found if np.isfinite(found) else latencies[np.isfinite(latencies)].max())


def _mean(values: Sequence[float]) -> float:
    known: NDArray[np.float64] = np.array([value for value in values if not math.isnan(value)])
    return float(known.mean()) if len(known) else math.nan
