"""Every cost model of the table keeps the same promises, on programs of two tasks in the view that it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorlite.cost_model import CostModel, Group, neural
from ansorlite.cost_model.protocol import predicted
from ansorlite.cost_model.uncertain import Uncertain
from ansorlite.cost_model.views import View, seen, view_of
from ansorlite.features.programs import ProgramSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.tuner.cost_models import COST_MODELS
from tests.workloads import matmul

TASKS = (Task(matmul(16, 24, 8)), Task(matmul(12, 8, 16)))
#: Of each task: what shared models need before they say anything, 64 a member of a family, and a few to score.
LEARNT, SCORED = 128, 12
#: What knows nothing of a program but that it is one.
BLIND = ("random",)
#: What says how sure it is, having learnt.
UNSURE = ("bagged", "forest")
#: What learns nothing.
FIXED = ("random", "draft")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neural model sees all programs once."""
    if find_spec("torch") is None:
        return
    for model in (neural.TensetMlp, neural.Tlp, neural.MultiTlp, neural.TreeLstm, neural.OneShot):
        monkeypatch.setattr(model, "training", replace(model.training, epochs=1))


@cache
def views(task: Task, view: View) -> NDArray[np.float64]:
    """Of the same programs in every view: the learnt ones first."""
    space = ProgramSpace(derive(task)[0])
    return seen(view, space.programs(space.space.sample(LEARNT + SCORED, np.random.default_rng(0))))


def groups(task: Task, view: View, failing: float = 0.0) -> list[Group]:
    rng = np.random.default_rng(1)
    knobs = views(task, View.KNOBS)[:LEARNT, 0]
    latencies = 1e-4 * (1.0 + (knobs - knobs.min(axis=0)).sum(axis=1))
    stopped = latencies > np.quantile(latencies, 0.8)
    return [Group(views(task, view)[:LEARNT], np.where(rng.random(LEARNT) < failing, np.inf, latencies), censored=stopped)]


def made(name: str, seed: int = 0) -> Sequence[CostModel]:
    return COST_MODELS[name](TASKS, np.random.default_rng(seed))


def fitted(name: str, failing: float = 0.0) -> Iterator[tuple[CostModel, NDArray[np.float64]]]:
    models = made(name)
    for task, model in zip(TASKS, models, strict=True):
        model.fit(groups(task, view_of(model), failing))
    for task, model in zip(TASKS, models, strict=True):
        yield model, views(task, view_of(model))[LEARNT:]


@pytest.mark.parametrize("name", COST_MODELS)
def test_before_and_after_anything_is_known_each_program_has_a_score(name: str) -> None:
    for task, model in zip(TASKS, made(name), strict=True):
        unseen = views(task, view_of(model))[LEARNT:]
        for told in ([], [Group(unseen, np.full(SCORED, np.inf))], groups(task, view_of(model), 0.5), []):
            model.fit(told)
            scores = predicted(model, unseen)
            assert scores.shape == (SCORED,)
            assert np.isfinite(scores).all()
            assert predicted(model, unseen[:0]).shape == (0,)


@pytest.mark.parametrize("name", COST_MODELS)
def test_the_same_seed_gives_the_same_scores(name: str) -> None:
    for (one, unseen), (two, _) in zip(fitted(name), fitted(name), strict=True):
        np.testing.assert_array_equal(predicted(one, unseen), predicted(two, unseen))


@pytest.mark.parametrize("name", [name for name in COST_MODELS if name not in BLIND])
def test_a_score_does_not_depend_on_who_else_is_scored(name: str) -> None:
    for model, unseen in fitted(name):
        apart = np.concatenate([predicted(model, unseen[at : at + 1]) for at in range(SCORED)])
        np.testing.assert_allclose(apart, predicted(model, unseen), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in COST_MODELS if name not in FIXED])
def test_what_it_is_told_changes_what_it_says(name: str) -> None:
    for (model, unseen), before in zip(fitted(name), made(name), strict=True):
        assert np.ptp(predicted(model, unseen)) > 0
        assert not np.allclose(predicted(model, unseen), predicted(before, unseen))


@pytest.mark.parametrize("name", UNSURE)
def test_one_that_says_how_sure_it_is_says_so_of_each(name: str) -> None:
    for model, unseen in fitted(name, failing=0.3):
        assert isinstance(model, Uncertain)
        mean, deviation = model.estimate(unseen)
        np.testing.assert_array_equal(mean, model.predict(unseen))
        assert (deviation >= 0).all()
        assert deviation.any()


def test_these_are_all_that_say_so() -> None:
    assert {name for name in COST_MODELS if isinstance(made(name)[0], Uncertain)} == {*UNSURE, *BLIND}
