"""The judge: what a space, a measurer, a metric and a run over a table say."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite.cost_model import CostModel
from ansorlite.records.measurement import Outcome
from ansorlite.search import Strategy, asking
from ansorlite.search.protocol import SearchProblem
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import host
from ansorlite.te.serialize import dump
from ansorlite.tuner.measurers import MEASURERS
from ansorlite.tuner.presets import PRESETS, Preset
from benchmarks.kernels.operators.matmul import Matmul
from benchmarks.search import metrics, statistics
from benchmarks.search.judge import Bench
from benchmarks.search.measurer import Noise, TableMeasurer, table_measurer
from benchmarks.search.record import Recorder, record_cloud, record_grid, settings
from benchmarks.search.recording import Recording
from benchmarks.search.results import Judged, Results, digest
from benchmarks.search.space import TableSpace, problem_of
from benchmarks.search.table import Kind, TableError, read, write
from tests.unit.benchmarks.search.support import small_table


def test_a_table_is_a_space() -> None:
    table = small_table(missing=10)
    space, rng = TableSpace(table, 0), np.random.default_rng(0)
    rows = np.indices((6, 7, 5)).reshape(3, -1).T
    assert space.valid(rows).sum() == len(table) == 200
    assert len(np.unique(space.canonical(rows), axis=0)) == 210
    assert space.valid(space.sample(100, rng)).all()
    near = space.neighbours(np.array([0, 3, 4]))
    assert {tuple(each) for each in near.tolist()} == {(1, 3, 4), (0, 2, 4), (0, 4, 4), (0, 3, 3)}
    mutated = space.mutate(rows, rng)
    assert ((mutated != rows).sum(axis=1) == 1).all()
    assert (np.abs(mutated - rows).sum(axis=1) == 1).mean() > 0.7
    np.testing.assert_allclose(space.embed(rows), np.log2(1 + rows))
    with pytest.raises(ValueError, match="not in the table"):
        space.positions(rows[-1:])


def test_a_candidate_is_found_again_and_measured() -> None:
    table = small_table(failed=5)
    problem = problem_of(table)
    candidates = [problem.spaces[0].candidate(row) for row in ((0, 0, 0), (3, 2, 1))]
    assert problem.locate(candidates[1]) == (0, (3, 2, 1))
    failed, ran = TableMeasurer(table).measure(None, candidates)
    assert failed.outcome.failed
    assert failed.latency is None
    assert ran.checked
    assert ran.latency == table.seconds[table.places[candidates[1].trace]]
    noisy = [next(TableMeasurer(table, Noise.PASSES, seed).measure(None, candidates[1:])).latency for seed in range(20)]
    assert set(noisy) == set(table.passes[table.places[candidates[1].trace]].tolist())


def test_the_expected_best_of_random_draws_is_exact() -> None:
    seconds = np.array([1.0, 2.0, 5.0, 7.0, 11.0])
    found = metrics.expected_best(seconds, 7)
    for k in range(1, 6):
        assert found[k - 1] == pytest.approx(np.mean([min(each) for each in itertools.combinations(seconds, k)]))
    assert (found[5:] == 1.0).all()


def test_the_score_is_one_at_once_and_nothing_for_random() -> None:
    seconds = metrics.programs(small_table())
    random = metrics.expected_best(seconds, 64)
    assert metrics.score(np.full(64, seconds[0]), random, seconds[0]) == pytest.approx(1)
    assert metrics.score(random, random, seconds[0]) == pytest.approx(0)
    run = metrics.best_so_far([(3, 2.0), (5, 1.0)], 6, 9.0)
    assert run.tolist() == [9.0, 9.0, 2.0, 2.0, 1.0, 1.0]
    assert metrics.trials_to(run, 1.0, 0.5) == 3
    assert metrics.trials_to(run, 0.5, 0.9) is None


def test_many_comparisons_need_more() -> None:
    adjusted = statistics.holm({"a": 0.01, "b": 0.04, "c": 0.03})
    assert adjusted == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert statistics.beats([1.0] * 10, [2.0] * 10)
    assert not statistics.beats([1.0] * 10, [1.0] * 10)
    assert statistics.worse([1.1], [1.0])
    low, high = statistics.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert low <= 3 <= high


@pytest.mark.parametrize("kind", [Kind.GRID, Kind.FOREIGN])
@pytest.mark.parametrize("name", [name for name in PRESETS if name != "autotvm"])
def test_every_preset_searches_tables_as_it_should(name: str, kind: Kind) -> None:
    """No program twice, to the end of the table, failures survived, the same again with the same seed."""
    table = small_table((5, 4, 3), kind, missing=4, failed=9)
    preset = Preset(
        **{**vars(PRESETS[name]), "cost_model": "gbdt" if PRESETS[name].cost_model == "own" else PRESETS[name].cost_model}
    )
    bench = Bench.of(table)
    courses = [bench.run(preset, 100, seed) for seed in (0, 0, 1)]
    assert len(courses[0].names) == len(set(courses[0].names)) == len(table) == 56
    assert courses[0].names == courses[1].names
    assert sum(latency is None for latency in courses[0].latencies) == 9
    if name != "autotvm-grid":
        assert courses[0].names != courses[2].names


def test_features_of_another_day_are_refused() -> None:
    table = small_table()
    meta = replace(table.meta, dag=dump(al.Task(Matmul(8, 8, 8).tensors(), host(1)).dag))
    with pytest.raises(TableError, match="describe"):
        Bench.of(replace(table, meta=meta))


def test_runs_are_kept_until_what_made_them_changes(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    write(small_table(), path)
    before = digest(PRESETS["local"], path)
    # What tells presets apart on one task's table; they may have the rest for themselves.
    different = {(preset.strategy, preset.cost_model, preset.round) for preset in PRESETS.values()}
    assert len({digest(preset, path) for preset in PRESETS.values()}) == len(different)
    results = Results(tmp_path / "r.jsonl")
    course = Bench.of(read(path)).run(PRESETS["local"], 40, 0)
    results.add(Judged.of("local", "t", 0, 40, before, course))
    again = Results(tmp_path / "r.jsonl")
    assert again.rows == results.rows
    ((kept,),) = again.current({("local", "t"): before}, 40).values()
    worst = metrics.slowest(small_table())
    assert metrics.best_so_far(kept.bests, 40, worst)[-1] == pytest.approx(min(filter(None, course.latencies)))
    assert not again.current({("local", "t"): "other"}, 40)
    assert not again.current({("local", "t"): before}, 64)


def test_a_task_is_recorded_and_replayed_behind_the_tuner(tmp_path: Path) -> None:
    """A grid and a cloud of a small product; a recording that is stopped goes on; ``al.tune`` measures by looking up."""
    task = al.Task(Matmul(96, 80, 64).tensors(), host(1))
    path = tmp_path / "readings.jsonl"

    def recorder(until: float) -> Recorder:
        return Recorder(task, Recording(path), MEASURERS["local"], settings(2), until)

    with recorder(0.0) as stopped:
        assert record_grid(task, "small", stopped, 12, searched=6) is None
    with recorder(np.inf) as going:
        made = record_grid(task, "small", going, 12, searched=6)
    assert made is not None
    count = len(Recording(path).readings)
    write(made, tmp_path / "t.npz")
    table = read(tmp_path / "t.npz", features=True)
    assert len(np.unique(table.key)) <= 12
    assert table.ran.any()
    with recorder(np.inf) as known:
        again = record_grid(task, "small", known, 12, searched=6)
    assert again is not None
    assert len(Recording(path).readings) == count
    np.testing.assert_array_equal(again.seconds, table.seconds)

    def listed(problem: SearchProblem, model: CostModel, rng: np.random.Generator) -> Strategy:
        """Proposes what the table has of the first sketch that it is of."""
        found = [place for trace in table.traces if (place := problem.locate(Candidate(trace))) is not None]
        first = found[0][0]
        rows = [row for position, row in found if position == first]
        return asking(lambda _: rows)(SearchProblem(problem.spaces[first : first + 1]), model, rng)

    result = al.tune(task, trials=8, strategy=listed, measurer=table_measurer(table), progress=False)
    ran = [trial for trial in result.history if trial.latency is not None]
    assert len(ran) >= 3
    assert all(trial.latency == float(table.seconds[table.places[trial.candidate.trace]]) for trial in ran)

    with Recorder(task, Recording(tmp_path / "c.jsonl"), MEASURERS["local"], settings(2), np.inf) as growing:
        assert len(record_cloud(task, "small", growing, 6) or ()) == 6
        assert len(record_cloud(task, "small", growing, 9) or ()) == 9


def test_a_cloud_none_of_whose_programs_ran_is_no_table_yet(tmp_path: Path) -> None:
    """Its readings are kept, and the next run goes on from them."""
    task = al.Task(Matmul(96, 80, 64).tensors(), host(1))

    def recorder(recording: Recording) -> Recorder:
        return Recorder(task, recording, MEASURERS["local"], settings(2), np.inf)

    ran, slow = Recording(tmp_path / "ran.jsonl"), Recording(tmp_path / "slow.jsonl")
    with recorder(ran) as measuring:
        assert record_cloud(task, "small", measuring, 3) is not None
    reference, *others = ran.readings
    for reading in (reference, *(replace(each, outcome=Outcome.EARLY_STOPPED.value) for each in others)):
        slow.add(reading)
    with recorder(slow) as known:
        assert record_cloud(task, "small", known, 3) is None
    assert len(Recording(slow.path).readings) == 4
