"""How models are judged on data sets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ansorlite.cost_model import CostModel, Group, RandomModel
from ansorlite.cost_model.views import View
from ansorlite.dataset import SPLITS, Entry, Split, judge
from ansorlite.dataset.judging import METRICS, scored
from ansorlite.dataset.models import models

from .support import entry


class Knowing:
    """Has seen all programs, and knows them again by their features."""

    view = View.FEATURES

    def __init__(self, entries: Sequence[Entry], sign: float = 1.0) -> None:
        self._known = {
            row.tobytes(): -sign * min(latency, 1.0)
            for each in entries
            for group in each.groups(View.FEATURES)
            for row, latency in zip(group.features, group.latencies, strict=True)
        }
        self.learnt = 0

    def fit(self, groups: Sequence[Group]) -> None:
        self.learnt = sum(len(group.latencies) for group in groups)

    def predict(self, features: np.ndarray[Any, Any]) -> Any:
        return np.array([self._known[row.tobytes()] for row in features])


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return [entry(16, 6), entry(24, 6)]


def test_who_knows_is_right_and_who_says_the_opposite_is_wrong(entries: list[Entry]) -> None:
    splits = [Split((entries[0],), (entries[1],)), Split((entries[1],), (entries[0],))]
    right, wrong = (judge(lambda _e, _r, s=sign: Knowing(entries, s), splits, 0) for sign in (1.0, -1.0))
    for name in ("Spearman", "pairwise", "top 1", "top 5", "TenSet's peak@5", "recall of 10"):
        assert right.mean[name] == pytest.approx(1), name
        assert wrong.mean[name] < 0.9, name
    assert right.top == (1, 1)
    assert right.entries == 2
    assert right.programs == np.mean([len(each) for each in entries])
    assert set(right.mean) == set(METRICS)


def test_a_model_is_fitted_on_a_split_before_it_is_judged(entries: list[Entry]) -> None:
    made: list[Knowing] = []

    def make(_entry: Entry, _rng: np.random.Generator) -> CostModel:
        made.append(Knowing(entries))
        return made[-1]

    judge(make, list(SPLITS["by_task"](entries, np.random.default_rng(0), 2)), 0)
    assert sorted(model.learnt for model in made) == sorted(map(len, entries))


def test_random_scores_are_as_good_as_chance(entries: list[Entry]) -> None:
    splits = [Split((entries[0],), (entries[1],))]
    found = [judge(lambda _, rng: RandomModel(rng), splits, seed).mean["pairwise"] for seed in range(40)]
    assert 0.4 < np.mean(found) < 0.6


@pytest.mark.parametrize("name", models())
def test_every_model_is_judged(name: str, entries: list[Entry]) -> None:
    splits = list(SPLITS["within_task"](entries, np.random.default_rng(0), 2))
    one, again = (judge(models(epochs=1)[name], splits, 0) for _ in range(2))
    assert one == again
    assert one.entries == 2
    assert all(np.isfinite(value) for metric, value in one.mean.items() if metric != "Spearman")


def test_scores_are_in_the_order_of_programs(entries: list[Entry]) -> None:
    finite = np.isfinite(entries[0].latencies)
    np.testing.assert_array_equal(-scored(Knowing(entries), entries[0])[finite], entries[0].latencies[finite])
