"""Cost models by name and by maker, and scores that are none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite.api.makers import cost_models
from ansorlite.cost_model import CostModel, Group
from ansorlite.cost_model.protocol import predicted
from ansorlite.errors import ArgumentError
from ansorlite.features import NAMES
from ansorlite.task import Task
from ansorlite.tuner.cost_models import COST_MODELS
from tests.workloads import matmul

TASKS = [Task(matmul(16, 16, 16)), Task(matmul(8, 8, 8))]


class Flat:
    """All programs are alike."""

    def __init__(self) -> None:
        self.fitted = 0

    def fit(self, groups: Sequence[Group]) -> None:
        self.fitted += sum(len(group.latencies) for group in groups) > 0

    def predict(self, features: np.ndarray[Any, Any]) -> Any:
        return np.zeros(len(features))


@pytest.mark.parametrize("name", COST_MODELS)
def test_each_name_makes_a_model_a_task(name: str) -> None:
    features = np.ones((3, 2, len(NAMES)))
    models = cost_models(COST_MODELS[name], TASKS, np.random.default_rng(0))
    assert len({id(model) for model in models}) == len(TASKS)
    assert predicted(models[0], features).shape == (3,)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([1.0, 2.0], "gave a list for 2 programs"),
        (None, "gave a NoneType for 2 programs"),
        (np.zeros((2, 1)), "gave an array of shape (2, 1) for 2 programs"),
        (np.zeros(1), "gave an array of shape (1,) for 2 programs"),
        (np.array([0.0, np.nan]), "gave scores that are no numbers (NaN) for 2 programs"),
    ],
)
def test_scores_that_are_none(scores: Any, told: str) -> None:
    class Wrong(Flat):
        def predict(self, _features: np.ndarray[Any, Any]) -> Any:
            return scores

    with pytest.raises(ArgumentError) as caught:
        predicted(Wrong(), np.zeros((2, 1, 1)))
    assert str(caught.value).startswith(f"Wrong.predict {told}; it must give")


def test_one_model_may_serve_several_tasks(tmp_path: Path) -> None:
    shared: list[CostModel] = []
    model = Flat()

    def maker(tasks: Sequence[Task], rng: np.random.Generator) -> list[CostModel]:
        assert isinstance(rng, np.random.Generator)
        shared.extend([model] * len(tasks))
        return shared

    al.tune(TASKS, trials=12, cost_model=maker, database=tmp_path / "t.db", progress=False)
    assert len(shared) == 2
    assert model.fitted
