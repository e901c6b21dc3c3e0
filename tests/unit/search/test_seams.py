"""The parts of a search under a model: each keeps what its kind promises."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.cost_model import GBDT, BlendedModel, Group, RandomModel
from ansorlite.cost_model.blend import UncertainBlend
from ansorlite.cost_model.uncertain import Bagged, Uncertain
from ansorlite.errors import ArgumentError, ExtraError
from ansorlite.evolution import keys
from ansorlite.search import STRATEGIES, Observation, SearchProblem, explorer_table
from ansorlite.search.acquisition import UpperBound, expected_improvement
from ansorlite.search.constrained import ConstrainedGenetic
from ansorlite.search.evolution_strategy import EvolutionStrategy
from ansorlite.search.exploration import ByRank, Contextual, Fixed
from ansorlite.search.explorers import Annealing, ExplorerMaker, Generations
from ansorlite.search.gradient import Gradient
from ansorlite.search.log import RoundLog
from ansorlite.search.ppo import PolicyWalk
from ansorlite.search.selectors import SELECTORS, Medoids, Pool, Spread, Submodular
from ansorlite.search.synthesis import Synthesis
from ansorlite.search.tree import TreeSearch
from tests.unit.synthetic import Machine, OrdinalSpace, Rows, SyntheticProgramSpace

#: Those of the table, looking through fewer rows than they do by default.
QUICK: dict[str, ExplorerMaker] = {
    "annealing": Annealing(chains=32, steps=100),
    "generations": Generations(population=256),
    "trees": TreeSearch(rollouts=512),
    "constrained": ConstrainedGenetic(population=64),
    "policy": PolicyWalk(walkers=64, steps=120),
    "synthesis": Synthesis(Annealing(chains=32, steps=100), 8),
    "cma": EvolutionStrategy(evaluations=512),
    "gradient": Gradient(starts=32, steps=64, rate=1.0, every=2, epochs=60),
}
EXPLORERS = {**explorer_table.EXPLORERS, **QUICK}
MACHINE = Machine((3, 7, 2, 5))


def pool(m: int, rng: np.random.Generator) -> Pool:
    rows = rng.integers(5, size=(m, 3))
    scores = np.sort(rng.random(m))[::-1]
    described: Any = SimpleNamespace(features=rows[:, None].astype(float), knobs=rows.astype(float))
    return Pool(rows, scores, described, lambda: rows[:, 0].astype(float))


@pytest.mark.parametrize("name", SELECTORS)
@settings(max_examples=30, deadline=None)
@given(m=st.integers(0, 60), n=st.integers(0, 20), seed=st.integers(0, 99))
def test_a_selector_gives_as_many_as_wanted_each_once_and_the_same_again(name: str, m: int, n: int, seed: int) -> None:
    given = pool(m, np.random.default_rng(seed))
    chosen = [SELECTORS[name](given, n, np.random.default_rng(seed)) for _ in range(2)]
    assert len(chosen[0]) == min(n, m) == len(set(chosen[0].tolist()))
    assert all(0 <= position < m for position in chosen[0].tolist())
    np.testing.assert_array_equal(*chosen)


def test_selectors_spread_over_the_pool() -> None:
    """Of two tight groups, a batch of a few has programs of both, though one group has all the best scores."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.integers(0, 2, (40, 4)), rng.integers(20, 22, (40, 4))])
    described: Any = SimpleNamespace(features=rows[:, None].astype(float), knobs=rows.astype(float))
    two = Pool(rows, np.linspace(1, 0.9, 80), described, lambda: np.ones(80))
    for selector in (Medoids(considered=20), Submodular(considered=20), SELECTORS["rdu"]):
        wide = selector(two, 20, rng)
        assert (wide >= 40).any(), selector
        assert (wide < 40).any(), selector
    assert (Spread(4)(two, 4, rng) < 80).all()


@pytest.mark.parametrize("name", EXPLORERS)
@pytest.mark.parametrize("sizes", [(6, 8, 5, 7), (1, 1), (9,)])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_an_explorer_hands_on_new_valid_programs_once_the_best_first(name: str, sizes: tuple[int, ...], share: float) -> None:
    space = OrdinalSpace(sizes, lambda rows: rows.sum(axis=1) % 3 != 1)

    def score(rows: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
        assert space.valid(rows).all()
        return -np.abs(space.canonical(rows) - np.array(sizes) // 2).sum(axis=1).astype(float)

    found = []
    for _ in range(2):
        rng = np.random.default_rng(7)
        explore = EXPLORERS[name](space, rng)
        first = space.sample(20, rng)
        taken = set(keys(space, first))
        rows, scores = explore(score, first[space.valid(first)], share, taken)
        again, _ = explore(score, first[space.valid(first)], share, taken)
        found.append((rows, again))
        assert space.valid(rows).all()
        assert len(set(keys(space, rows))) == len(rows)
        assert not set(keys(space, rows)) & taken
        assert (np.diff(scores) <= 0).all()
        np.testing.assert_array_equal(scores, score(rows))
    for before, after in zip(*found, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_finds_what_scores_high(name: str) -> None:
    """Better than as many random rows as any of them looks at."""
    space = OrdinalSpace((12, 12, 12, 12, 12, 12))
    machine = Machine((3, 7, 2, 5, 9, 4))

    def score(rows: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
        return -machine.latency(space.canonical(rows))

    reached = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        _, scores = EXPLORERS[name](space, rng)(score, space.sample(0, rng), 1.0, set())
        reached.append(scores[0] - score(space.sample(512, rng)).max())
    assert np.median(reached) >= 0


def test_children_keep_a_constraint_that_few_rows_keep() -> None:
    """Where one row in 200 is valid, nothing else is scored."""
    allowed = {(a, b, c) for a in range(12) for b in range(12) for c in range(12) if a * b == 2 * c and a}
    space = OrdinalSpace((12, 12, 12), lambda rows: np.array([tuple(row) in allowed for row in rows.tolist()], bool))
    legal = np.array(sorted(allowed))

    class Solved(OrdinalSpace):
        def sample(self, n: int, rng: np.random.Generator) -> Rows:
            return legal[rng.integers(len(legal), size=n)]

    solved = Solved((12, 12, 12), space.allowed)
    scored: list[Rows] = []

    def score(rows: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
        scored.append(rows)
        return -np.abs(rows - np.array([6, 3, 9])).sum(axis=1).astype(float)

    rows, _ = ConstrainedGenetic()(solved, np.random.default_rng(0))(score, legal[:0], 1.0, set())
    assert tuple(rows[0].tolist()) == (6, 3, 9)
    assert all(tuple(row) in allowed for row in np.concatenate(scored).tolist())


def test_what_improves_is_worth_more_and_so_is_what_is_unsure() -> None:
    mean, std = np.array([0.5, 1.5, 0.5, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])
    worth = expected_improvement(mean, std, 1.0)
    assert worth[0] == 0
    assert worth[1] == pytest.approx(0.5)
    assert worth[3] == pytest.approx(1 / np.sqrt(2 * np.pi))
    assert 0 < worth[2] < worth[3]
    draws = np.random.default_rng(0).normal(0.5, 1.0, 200_000)
    assert worth[2] == pytest.approx(np.maximum(draws - 1.0, 0).mean(), rel=0.02)
    np.testing.assert_array_equal(UpperBound(2.0)(mean, std, 0.0), mean + 2 * std)


def log(rank: float) -> RoundLog:
    return RoundLog(0, 1, (1,), 0, 0, 0, 1, 0, rank, 1.0, 0.0, 0.0)


def test_more_is_drawn_at_random_where_the_model_is_unsure_or_was_wrong() -> None:
    assert Fixed(0.1)([], lambda: 1.0) == 0.1
    assert [Contextual()([], lambda doubt=doubt: doubt) for doubt in (0.0, 0.3, np.inf)] == [0.0, 0.3, 1.0]
    shares = [ByRank(0.05, 0.25)([log(rank)], lambda: 0.0) for rank in (1.0, 0.0, -1.0)]
    assert shares == pytest.approx([0.05, 0.15, 0.25])
    assert ByRank()([log(0.0), log(float("nan"))], lambda: 0.0) == ByRank()([log(0.0)], lambda: 0.0)


def groups(n: int, seed: int) -> list[Group]:
    features = np.random.default_rng(seed).random((n, 2, 3))
    return [Group(features, np.exp(-features[:, :, 0].sum(axis=1)))]


def models() -> list[Uncertain]:
    rng = np.random.default_rng(0)
    return [Bagged(rng), UncertainBlend(lambda features: features[:, :, 1].sum(axis=1), Bagged(rng)), RandomModel(rng)]


@pytest.mark.parametrize("position", range(3))
def test_an_uncertain_model_says_how_sure_it_is(position: int) -> None:
    model = models()[position]
    assert isinstance(model, Uncertain)
    (unseen,) = groups(20, 9)
    for told in ([], groups(60, 0)):
        model.fit(told)
        mean, deviation = model.estimate(unseen.features)
        assert mean.shape == deviation.shape == model.predict(unseen.features).shape == (20,)
        assert np.isfinite(mean).all()
        assert (deviation >= 0).all()


def test_bagged_forests_rank_and_are_surest_of_what_they_have_seen() -> None:
    model = Bagged(np.random.default_rng(0))
    (known,) = groups(120, 0)
    model.fit([known])
    (unseen,) = groups(60, 1)
    mean, _ = model.estimate(unseen.features)
    assert np.corrcoef(mean, -np.log(unseen.latencies))[0, 1] > 0.75
    error = np.abs(model.estimate(unseen.features)[0] - known.latencies.min() / unseen.latencies)
    deviation = model.estimate(unseen.features)[1]
    assert (error < 2 * deviation + 0.05).mean() > 0.7


@pytest.mark.parametrize("name", ["adatune", "pruner"])
def test_a_model_that_does_not_say_how_sure_it_is_is_refused_in_a_sentence(name: str) -> None:
    problem = SearchProblem((SyntheticProgramSpace("a", OrdinalSpace((2, 3)), MACHINE.features),))
    for model in (GBDT(), BlendedModel(lambda features: features[:, 0, 0], GBDT())):
        with pytest.raises(ArgumentError, match=r"how sure its cost model is, which .* does not say; take cost_model='bagged'"):
            STRATEGIES[name](problem, model, np.random.default_rng(0))


def test_draft_then_verify_looks_with_the_prior_and_chooses_with_the_model() -> None:
    space = OrdinalSpace((30, 30, 30))
    asked: list[int] = []

    def prior(features: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        asked.append(len(features))
        return -np.abs(features[:, 0] - 15).sum(axis=1)

    problem = SearchProblem((SyntheticProgramSpace("a", space, lambda rows: rows[:, None].astype(float)),), prior)
    strategy = STRATEGIES["pruner"](problem, Bagged(np.random.default_rng(0)), np.random.default_rng(0))
    first = strategy.propose(16)
    strategy.observe([Observation(each, 1.0 + index) for index, each in enumerate(first)])
    asked.clear()
    found = np.array([problem.locate(each)[1] for each in strategy.propose(16)])  # type: ignore[index]
    # Drafted, and verified: many by the prior, few by the model.
    assert strategy.rounds[-1].scored <= 512
    assert sum(asked) > 4 * strategy.rounds[-1].scored
    assert np.median(np.abs(found - 15).sum(axis=1)) < 20


@pytest.mark.parametrize(("name", "package"), [("tuna", "cmaes"), ("bayesian", "sklearn")])
def test_what_an_extra_is_needed_for_says_which(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda module, *rest: None if module == package else there(module, *rest))
    problem = SearchProblem((SyntheticProgramSpace("a", OrdinalSpace((2, 3)), MACHINE.features),))
    with pytest.raises(ExtraError, match=rf"needs {package}, which is not installed; pip install 'ansorlite\[search\]'"):
        STRATEGIES[name](problem, GBDT(), np.random.default_rng(0))
