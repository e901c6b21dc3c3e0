"""Every strategy keeps the same promises."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.cost_model import GBDT, RandomModel
from ansorlite.cost_model.uncertain import Bagged
from ansorlite.errors import ArgumentError
from ansorlite.evolution import EvolutionSettings, keys
from ansorlite.search import STRATEGIES, EvolutionarySearch, EvolutionarySettings, Observation, SearchProblem, Strategy, asking
from ansorlite.search.acquisition import UpperBound, expected_improvement
from ansorlite.search.bayesian import BayesianSearch, BayesianSettings
from ansorlite.search.constrained import ConstrainedGenetic
from ansorlite.search.evolution_strategy import EvolutionStrategy
from ansorlite.search.exploration import ByRank, Contextual, Fixed
from ansorlite.search.explorers import Annealing, Evolving, Generations
from ansorlite.search.flextensor import FlexTensorSearch, WalkSettings
from ansorlite.search.genetic import GeneticSearch, GeneticSettings
from ansorlite.search.gradient import Gradient
from ansorlite.search.lfbo import ClassifyingSearch, TreeSettings
from ansorlite.search.ppo import PolicyWalk
from ansorlite.search.selectors import RDU, Medoids, Roulette, Submodular, top
from ansorlite.search.synthesis import Synthesis
from ansorlite.search.tree import TreeSearch
from ansorlite.search.value import ValueSearch, ValueSettings
from ansorlite.sketch.candidate import NAIVE, Candidate
from tests.unit.synthetic import Machine, OrdinalSpace, Rows, SyntheticProgramSpace

QUICK = EvolutionarySettings(Evolving(EvolutionSettings(population=32, generations=1), least_population=16))
#: Searches under a model that look through fewer rows than they do by default.
FAST: dict[str, EvolutionarySettings] = {
    "evolutionary": QUICK,
    "ansor": EvolutionarySettings(Generations(population=32, generations=1), top),
    "metaschedule": EvolutionarySettings(Generations(population=32, generations=1), top),
    "autotvm": EvolutionarySettings(Annealing(chains=16, steps=10), top),
    "adatune": EvolutionarySettings(Annealing(chains=16, steps=10), top, Contextual(), expected_improvement),
    "chameleon": EvolutionarySettings(PolicyWalk(walkers=16, steps=8, horizon=4), Medoids()),
    "chameleon_sampling": EvolutionarySettings(Annealing(chains=16, steps=10), Medoids()),
    "chameleon_synthesis": EvolutionarySettings(Synthesis(Annealing(chains=16, steps=10), 3), Medoids()),
    "protuner": EvolutionarySettings(TreeSearch(random=3, rollouts=64), top),
    "heron": EvolutionarySettings(ConstrainedGenetic(population=32, generations=1, parents=16), Roulette(), Fixed(0.0)),
    "tuna": EvolutionarySettings(EvolutionStrategy(population=8, evaluations=32), top, Fixed(0.0)),
    "pruner": EvolutionarySettings(QUICK.explorer, acquisition=UpperBound(), drafts=True),
    "every selector": EvolutionarySettings(QUICK.explorer, RDU(), ByRank()),
    "submodular": EvolutionarySettings(QUICK.explorer, Submodular()),
    "gradient": EvolutionarySettings(Gradient(starts=2, steps=4, every=2, sampled=16, epochs=1)),
}
#: Of searches that go by measured times alone: what they are made with, for as few programs as the tests have.
SMALL: dict[str, Callable[..., Strategy]] = {
    "lfbo": lambda *given: ClassifyingSearch(*given, TreeSettings(first=4, trees=5, moves=8)),
    "bayesian": lambda *given: BayesianSearch(*given, BayesianSettings(first=4, pool=32)),
    "genes": lambda *given: GeneticSearch(*given, GeneticSettings(population=6, uniform=True)),
    "flextensor": lambda *given: FlexTensorSearch(*given, WalkSettings(first=4, epochs=2)),
    "genetic": lambda *given: GeneticSearch(*given, GeneticSettings(population=6)),
    "value": lambda *given: ValueSearch(*given, ValueSettings(width=4, values=4, epochs=1)),
}


def maker(name: str) -> Callable[[SearchProblem, int], Strategy]:
    def made(problem: SearchProblem, seed: int) -> Strategy:
        model, rng = RandomModel(np.random.default_rng(seed)), np.random.default_rng(seed)
        if name in FAST:
            return EvolutionarySearch(problem, model, rng, FAST[name])
        return {**STRATEGIES, **OTHERS, **SMALL}[name](problem, model, rng)

    return made


def random_rows(text: str) -> list[list[int]]:
    """A proposer: rows that it makes up of what it is told."""
    wanted, sizes = re.findall(r"Propose (\d+) rows.*below (\[.*?\])", text)[0]
    rng = np.random.default_rng(len(text))
    return rng.integers(json.loads(sizes), size=(int(wanted), len(json.loads(sizes)))).tolist()


OTHERS = {"asked": asking(random_rows)}
MAKERS: dict[str, Callable[[SearchProblem, int], Strategy]] = {name: maker(name) for name in {**STRATEGIES, **OTHERS, **FAST}}
MACHINE = Machine((3, 7, 2, 5))


def problem(*spaces: OrdinalSpace) -> SearchProblem:
    def made(position: int, space: OrdinalSpace) -> SyntheticProgramSpace:
        return SyntheticProgramSpace(
            f"sketch {position}", space, lambda rows: np.log1p(rows.astype(float))[:, None, :] + np.full((1, 2, 1), position)
        )

    return SearchProblem(tuple(made(position, space) for position, space in enumerate(spaces)))


def located(task: SearchProblem, candidate: Candidate) -> tuple[int, tuple[int, ...]]:
    found = task.locate(candidate)
    assert found is not None
    return found


def program(task: SearchProblem, candidate: Candidate) -> tuple[int, bytes]:
    position, row = located(task, candidate)
    return position, keys(task.spaces[position].space, np.asarray([row], np.int64))[0]


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3),
    valid=st.sampled_from(["all", "none", "some"]),
    batch=st.integers(1, 40),
    outcome=st.sampled_from(["equal", "failed", "random"]),
    seed=st.integers(0, 99),
)
def test_proposes_every_program_once_and_then_nothing(
    name: str, sizes: list[list[int]], valid: str, batch: int, outcome: str, seed: int
) -> None:
    allowed: dict[str, Callable[[Rows], np.ndarray]] = {
        "all": lambda rows: np.ones(len(rows), bool),
        "none": lambda rows: np.zeros(len(rows), bool),
        "some": lambda rows: rows.sum(axis=1) % 2 == 0,
    }
    # A program of two rows must be valid in both or in neither.
    spaces = [
        OrdinalSpace(tuple(each), lambda rows, s=tuple(each): allowed[valid](OrdinalSpace(s).canonical(rows))) for each in sizes
    ]
    task = problem(*spaces)
    rng = np.random.default_rng(seed)
    strategy = MAKERS[name](task, seed)
    expected = set()
    for position, space in enumerate(spaces):
        rows = np.indices(space.extents).reshape(len(space.extents), -1).T
        expected |= {(position, key) for key in keys(space, rows[space.valid(rows)])}
    proposed: list[tuple[int, bytes]] = []
    for _ in range(600):
        candidates = strategy.propose(batch)
        assert len(candidates) <= batch
        assert len(candidates) == min(batch, len(expected) - len(proposed))
        if not candidates:
            break
        proposed += [program(task, candidate) for candidate in candidates]
        latency = {"equal": lambda: 1.0, "failed": lambda: None, "random": lambda: float(rng.random()) + 0.1}[outcome]
        strategy.observe([Observation(candidate, latency()) for candidate in candidates])
    assert len(proposed) == len(set(proposed))
    assert set(proposed) == expected
    assert strategy.propose(batch) == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_same_seed_same_candidates(name: str) -> None:
    task = problem(OrdinalSpace((9, 12, 8, 10)), OrdinalSpace((9, 12, 8, 10)))
    history = []
    for _ in range(2):
        model, rng = Bagged(np.random.default_rng(1), 3), np.random.default_rng(5)
        strategy = EvolutionarySearch(task, model, rng, FAST[name]) if name in FAST else STRATEGIES[name](task, model, rng)
        found = []
        for _ in range(3):
            batch = strategy.propose(6)
            found += batch
            strategy.observe([Observation(c, float(MACHINE.latency(np.asarray([located(task, c)[1]]))[0])) for c in batch])
        history.append(found)
    assert history[0] == history[1]


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_measured_before_is_not_proposed(name: str) -> None:
    task = problem(OrdinalSpace((2, 3)))
    strategy = MAKERS[name](task, 0)
    strategy.observe([Observation(task.spaces[0].candidate((0, 2)), 1.0), Observation(task.spaces[0].candidate((1, 1)))])
    # Row (0, 2) is the program of all rows that begin with 0.
    assert {located(task, candidate)[1] for candidate in strategy.propose(99)} == {(1, 0), (1, 2)}


@pytest.mark.parametrize("name", MAKERS)
def test_other_programs_are_passed_over_but_a_wrong_row_is_an_error(name: str) -> None:
    task = problem(OrdinalSpace((2, 3)))
    strategy = MAKERS[name](task, 0)
    strategy.observe([Observation(NAIVE, 3.0), Observation(Candidate("an older sketch: 1"), 1.0)])
    assert len(strategy.propose(99)) == 4
    for row in ((1,), (2, 0), (0, -1)):
        with pytest.raises(ValueError, match="does not fit"):
            strategy.observe([Observation(task.spaces[0].candidate(row), 1.0)])


@pytest.mark.parametrize("name", MAKERS)
def test_a_proposal_need_not_be_measured(name: str) -> None:
    """A tuning that is stopped in the middle of a batch loses nothing but the measurements."""
    task = problem(OrdinalSpace((20, 20, 20)))
    strategy = MAKERS[name](task, 0)
    first = strategy.propose(5)
    strategy.observe([Observation(first[0], 1.0)])
    assert not {program(task, c) for c in first} & {program(task, c) for c in strategy.propose(50)}
    assert strategy.propose(0) == []


@pytest.mark.parametrize("name", MAKERS)
def test_failures_and_records_leave_a_strategy_that_goes_on(name: str) -> None:
    """A strategy that is told of earlier measurements, half of them failures, proposes what is left and nothing else."""
    space = OrdinalSpace((6, 7, 5))
    task = problem(space)
    rng = np.random.default_rng(3)
    before = MAKERS[name](task, 0)
    known = [Observation(c, None if rng.random() < 0.5 else float(rng.random()) + 0.1) for c in before.propose(120)]
    after = MAKERS[name](task, 1)
    after.observe(known)
    rest = []
    while batch := after.propose(16):
        after.observe([Observation(candidate, 1.0) for candidate in batch])
        rest += batch
    every = keys(space, np.indices(space.extents).reshape(3, -1).T)
    proposed = {program(task, candidate) for candidate in [*(each.candidate for each in known), *rest]}
    assert len(proposed) == len(known) + len(rest) == len(set(every))


RUBBISH = ("nothing", 3, [[1, 2]], [[1, 2, 3, 4]], [[0, 0, 99]], [[0, 0, -1]], [[0.5, 0, 0]], [["a"] * 3], [[1 << 80, 0, 0]])


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_a_proposer_of_rubbish_is_told_so(rubbish: Any) -> None:
    rng = np.random.default_rng(0)
    strategy = asking(lambda _: rubbish)(problem(OrdinalSpace((6, 7, 5))), RandomModel(rng), rng)
    with pytest.raises(ArgumentError, match=r"the proposer gave .*; it must give .* 3 whole numbers below \[6, 7, 5\]"):
        strategy.propose(4)


@pytest.mark.parametrize(
    "name", ["genetic", "annealing", "local", "descent", "lfbo", "bayesian", "genes", "reinforce", "flextensor"]
)
def test_a_strategy_that_learns_beats_random_on_a_valley(name: str) -> None:
    task = problem(OrdinalSpace((9, 12, 8, 10)), OrdinalSpace((9, 12, 8, 10)))

    def best_after(which: str, seed: int) -> float:
        rng = np.random.default_rng(seed)
        strategy = STRATEGIES[which](task, GBDT(), rng)
        found: list[float] = []
        while len(found) < 256:
            batch = strategy.propose(16)
            seconds = [float(MACHINE.latency(np.asarray([located(task, c)[1]]))[0]) for c in batch]
            strategy.observe([*map(Observation, batch, seconds)])
            found += seconds
        return min(found)

    learnt, drawn = ([best_after(which, seed) for seed in range(3)] for which in (name, "random"))
    assert np.median(learnt) < np.median(drawn)


def test_belief_keeps_a_batch_apart() -> None:
    """What is expected of the programs chosen is believed, so that their neighbours are no longer worth as much."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'ansorlite[search]'")
    rng = np.random.default_rng(0)
    known, pool = np.array([[0.0], [6.0]]), np.array([[3.0], [3.01], [1.5], [4.5]])
    both = []
    for believes in (False, True):
        settings = BayesianSettings(believes=believes)
        search = BayesianSearch(problem(OrdinalSpace((9, 12, 8, 10))), RandomModel(rng), rng, settings)
        both.append(set(search._believed(known, np.zeros(2), pool, 2)))
    together, apart = both
    assert together == {0, 1}
    assert len(apart & {0, 1}) == 1
