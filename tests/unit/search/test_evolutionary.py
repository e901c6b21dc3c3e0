"""The evolutionary search finds good programs on a machine known in closed form."""

import dataclasses
import logging

import numpy as np
import pytest

from ansorlite.cost_model import GBDT, BlendedModel
from ansorlite.evolution import EvolutionSettings
from ansorlite.search import EvolutionarySearch, EvolutionarySettings, Observation, RandomSearch, SearchProblem, Strategy
from ansorlite.search.exploration import Fixed
from ansorlite.search.explorers import Evolving
from ansorlite.search.selectors import Spread
from ansorlite.sketch.candidate import Candidate
from tests.unit.synthetic import Machine, OrdinalSpace, SyntheticProgramSpace

SPACE = OrdinalSpace((6, 12, 12, 9, 10, 14))
MACHINES = (Machine((4, 8, 3, 6, 2, 11)), Machine((1, 2, 9, 0, 7, 3), floor=4e-3))
SETTINGS = EvolutionarySettings(Evolving(EvolutionSettings(population=256, generations=3), least_population=64))
FAST = SyntheticProgramSpace("fast", SPACE, lambda rows: MACHINES[0].features(SPACE.canonical(rows)))
SLOW = SyntheticProgramSpace("slow", SPACE, lambda rows: MACHINES[1].features(SPACE.canonical(rows)) * 2)
PROBLEM = SearchProblem((FAST, SLOW))


def latency(candidate: Candidate) -> float:
    found = PROBLEM.locate(candidate)
    assert found is not None
    position, row = found
    return float(MACHINES[position].latency(SPACE.canonical(np.asarray([row])))[0])


def tune(strategy: Strategy, trials: int, batch: int = 16) -> list[float]:
    found: list[float] = []
    while len(found) < trials:
        candidates = strategy.propose(batch)
        measured = [latency(candidate) for candidate in candidates]
        strategy.observe([*map(Observation, candidates, measured)])
        found += measured
    return found


def test_beats_random_search_at_equal_trials() -> None:
    ours, random = [], []
    for seed in range(5):
        ours.append(min(tune(EvolutionarySearch(PROBLEM, GBDT(), np.random.default_rng(seed), SETTINGS), 96)))
        random.append(min(tune(RandomSearch(PROBLEM, GBDT(), np.random.default_rng(seed)), 96)))
    floor = MACHINES[0].floor  # the latency of the best program of all
    assert np.mean(ours) - floor < 0.75 * (np.mean(random) - floor)


def test_a_prior_makes_the_first_round_better_than_random() -> None:
    def prior(features: np.ndarray) -> np.ndarray:
        # One of the terms of the true latency of the fast sketch, on its scale.
        return -((features[:, 0, 1] - 8) ** 2) * 0.05 - (features[:, 0, 5] - 11) ** 2 * 0.05

    task = SearchProblem((FAST,))
    ratios = []
    for seed in range(5):
        ours = EvolutionarySearch(task, BlendedModel(prior, GBDT()), np.random.default_rng(seed), SETTINGS)
        random = RandomSearch(task, GBDT(), np.random.default_rng(seed))
        ratios.append(np.median([latency(c) for c in ours.propose(16)]) / np.median([latency(c) for c in random.propose(16)]))
    assert np.exp(np.mean(np.log(ratios))) < 0.8


def test_the_better_sketch_gets_most_trials() -> None:
    strategy = EvolutionarySearch(PROBLEM, GBDT(), np.random.default_rng(0), SETTINGS)
    tune(strategy, 128)
    fast, slow = np.sum([each.by_sketch for each in strategy.rounds], axis=0)
    assert fast > 3 * slow
    assert slow >= 4


def test_rounds_say_what_was_expected_and_found(caplog: pytest.LogCaptureFixture) -> None:
    strategy = EvolutionarySearch(PROBLEM, GBDT(), np.random.default_rng(1), SETTINGS)
    with caplog.at_level(logging.INFO, logger="ansorlite.search"):
        found = tune(strategy, 80)
    assert [each.round for each in strategy.rounds] == list(range(5))
    assert [each.proposed for each in strategy.rounds] == [16] * 5
    assert [each.trained_on for each in strategy.rounds] == [0, 16, 32, 48, 64]
    assert [each.measured for each in strategy.rounds] == [16] * 5
    assert strategy.rounds[-1].best == min(found)
    assert strategy.rounds[0].explored == 16  # nothing is known yet
    assert all(each.explored < 8 for each in strategy.rounds[1:])
    assert all(each.scored > 100 for each in strategy.rounds)
    assert np.isnan(strategy.rounds[0].rank_correlation)
    assert np.mean([each.rank_correlation for each in strategy.rounds[1:]]) > 0.2
    assert len([record for record in caplog.records if "rank correlation" in record.message]) == 5


def test_failures_are_counted_and_a_repeated_measurement_keeps_the_faster() -> None:
    strategy = EvolutionarySearch(PROBLEM, GBDT(), np.random.default_rng(1), SETTINGS)
    batch = strategy.propose(4)
    strategy.observe([Observation(batch[0]), *(Observation(batch[1], seconds) for seconds in (2.0, 1.0, 3.0))])
    (log,) = strategy.rounds
    assert (log.measured, log.failed, log.best) == (2, 1, 1.0)
    latencies = np.concatenate([group.latencies for group in strategy.groups()])
    assert sorted(latencies.tolist()) == [1.0, np.inf]


def test_earlier_measurements_resume_the_search() -> None:
    before = EvolutionarySearch(PROBLEM, GBDT(), np.random.default_rng(2), SETTINGS)
    tune(before, 96)
    known = [
        Observation(space.candidate(tuple(row)), seconds)
        for space, arm in zip(PROBLEM.spaces, before.groups(), strict=True)
        for row, seconds in zip((arm.features[:, 0, :6] / (1 + (space is SLOW))).astype(int).tolist(), arm.latencies, strict=True)
    ]
    after = EvolutionarySearch(PROBLEM, GBDT(), np.random.default_rng(3), SETTINGS)
    after.observe(known)
    batch = after.propose(16)
    assert after.rounds[0].trained_on == 96
    assert not {each.candidate for each in known} & set(batch)
    assert np.median([latency(candidate) for candidate in batch]) < np.quantile([each.latency for each in known], 0.4)


def test_programs_of_one_batch_are_kept_apart() -> None:
    apart = dataclasses.replace(SETTINGS, exploration=Fixed(0.0), selector=Spread(3))
    task = SearchProblem((FAST,))
    strategy = EvolutionarySearch(task, GBDT(), np.random.default_rng(0), apart)
    tune(strategy, 32)
    rows = np.asarray([FAST.row_of(candidate) for candidate in strategy.propose(8)])
    differing = (rows[:, None] != rows[None, :]).sum(axis=2)
    assert (differing[~np.eye(8, dtype=bool)] >= 3).all()
