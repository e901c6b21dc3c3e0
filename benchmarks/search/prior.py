"""Whether experience of other tasks helps: the experiment behind shipping a trained prior, or not.

Each task is left out; what was learnt of the others ranks its programs, before anything is measured and after a few were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from ansorlite.cost_model import GBDT, BlendedModel, CostModel, Group, neural, peak_score, rank_correlation
from ansorlite.cost_model.blend import Prior
from ansorlite.cost_model.views import View
from ansorlite.dataset import Entry
from ansorlite.dataset.splits import by_task
from ansorlite.platforms.table import platform_of
from ansorlite.tuner.base_model import LARGE
from benchmarks.common.tables import Table as Grid

Floats: TypeAlias = NDArray[np.float64]
#: Of the groups of a task, ``(n,)`` scores of all programs.
Scorer: TypeAlias = Callable[[Sequence[Group]], Floats]

#: Programs of the task itself that were measured.
MEASURED: Final = (0, 16)
#: The weight of what others taught is halved with each so many programs measured.
HALVED: Final = 64
_METRICS: Final[Mapping[str, Callable[[Floats, Floats], float]]] = {
    "Spearman": rank_correlation,
    "top 1": lambda scores, latencies: peak_score(scores, latencies, 1),
    "top 4": lambda scores, latencies: peak_score(scores, latencies, 4),
}


class Corrected:
    """Trees that learn from other tasks what the draft gets wrong; both in shares of the best speed."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._trees = GBDT(LARGE)

    def fit(self, groups: Sequence[Group]) -> None:
        self._trees.fit(groups, self._shares(groups))

    def scores(self, groups: Sequence[Group]) -> Floats:
        """``(n,)``: of all programs of a task."""
        return np.concatenate(self._shares(groups)) + _all(self._trees, groups)

    def _shares(self, groups: Sequence[Group]) -> list[Floats]:
        """What the draft makes of each group: shares of the speed of its favourite of the task."""
        priors = [self._prior(group.features) for group in groups]
        best: dict[str, float] = {}
        for group, prior in zip(groups, priors, strict=True):
            best[group.task] = max(best.get(group.task, -np.inf), float(prior.max()))
        return [np.exp(prior - best[group.task]) for group, prior in zip(groups, priors, strict=True)]


def experiment(clouds: Sequence[Entry], folds: int, seed: int, epochs: int | None) -> Grid:
    """The table: means over tasks, and how likely a difference from today's is luck (Wilcoxon over tasks, two-sided)."""
    found: dict[tuple[int, str], dict[str, list[float]]] = {}
    for measured, name, scores, latencies in _scores(clouds, folds, seed, epochs):
        values = found.setdefault((measured, name), {metric: [] for metric in _METRICS})
        for metric, of in _METRICS.items():
            values[metric].append(of(scores, latencies))
    rows = []
    for (measured, name), values in found.items():
        today = next(each for (count, _), each in found.items() if count == measured)
        cells = [cell for metric in _METRICS for cell in _cells(values[metric], today[metric])]
        rows.append((f"{measured} measured: {name}", *cells, str(len(values["top 1"]))))
    header = tuple(cell for metric in _METRICS for cell in (metric, "p"))
    return Grid("experience of other tasks", ("scores by", *header, "tasks"), tuple(rows))


def _cells(ours: Sequence[float], theirs: Sequence[float]) -> tuple[str, str]:
    pairs = np.array([pair for pair in zip(ours, theirs, strict=True) if np.isfinite(pair).all()]).reshape(-1, 2)
    same = not len(pairs) or (pairs[:, 0] == pairs[:, 1]).all()
    chance = "–" if same else f"{wilcoxon(pairs[:, 0], pairs[:, 1]).pvalue:.3f}"
    return f"{np.nanmean(ours):.3f}", chance


def _scores(clouds: Sequence[Entry], folds: int, seed: int, epochs: int | None) -> Iterator[tuple[int, str, Floats, Floats]]:
    """How many were measured, who scores, the scores and the latencies of the others; today's way first."""
    for split in by_task(clouds, np.random.default_rng(seed), folds):
        prior = platform_of(split.test[0].task.target).prior(split.test[0].task.target)
        known = [group for entry in split.train for group in entry.groups(View.FEATURES)]
        trees, corrected, network = GBDT(LARGE), Corrected(prior), neural.TensetMlp(np.random.default_rng(seed), epochs)
        for model in (trees, corrected, network):
            model.fit(known)
        bases: dict[str, Scorer] = {
            "trees of other tasks": partial(_all, trees),
            "the draft, corrected by trees of other tasks": corrected.scores,
            "TenSet's network of other tasks": partial(_all, network),
        }
        for entry in split.test:
            for measured in MEASURED:
                yield from _of_one(entry, measured, prior, bases, np.random.default_rng([seed, measured]))


def _of_one(
    entry: Entry, measured: int, prior: Prior, bases: Mapping[str, Scorer], rng: np.random.Generator
) -> Iterator[tuple[int, str, Floats, Floats]]:
    chosen = rng.permutation(len(entry)) < measured
    rest = entry.take(~chosen)
    if rest is None or not np.isfinite(rest.latencies).any():
        return
    known = entry.take(chosen)
    local = BlendedModel(prior, GBDT(), entry.task.key)
    local.fit([] if known is None else known.groups(View.FEATURES))
    groups = rest.groups(View.FEATURES)
    own = _all(local, groups)
    yield measured, "the draft" if known is None else "today's model", own, rest.latencies
    weight = 2.0 ** (-measured / HALVED)
    if known is not None:
        # Without this row one would take for experience what is the draft's.
        draft = np.concatenate([prior(group.features) for group in groups])
        yield measured, "today's model and the draft again", own + weight * _unit(draft) * float(np.std(own)), rest.latencies
    for name, score in bases.items():
        theirs = score(groups)
        scores = theirs if known is None else own + weight * _unit(theirs) * float(np.std(own))
        yield measured, name if known is None else f"today's model and {name}", scores, rest.latencies


def _unit(scores: Floats) -> Floats:
    """With a mean of 0 and a deviation of 1: a network's scores have no unit."""
    deviation = float(np.std(scores))
    return (scores - scores.mean()) / (deviation if deviation > 0 else 1.0)


def _all(model: CostModel, groups: Sequence[Group]) -> Floats:
    """``(n,)``: the scores of all programs."""
    return np.concatenate([model.predict(group.features) for group in groups])
