"""What clouds say together: families of tasks, and a base model of others."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ansorlite.task_scheduler import SCHEDULERS
from benchmarks.search import families, sharing, transfer
from benchmarks.search.__main__ import TABLES, main
from benchmarks.search.families import WAYS, Cloud, replay
from benchmarks.search.kept import kept
from benchmarks.search.table import Kind, Table, read, tables_in

NAMES = ("odd_softmax_331x1009", "bert_softmax_1536x128", "odd_matmul_17x1009x331", "odd_matmul_197x197x197")


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    return [read(TABLES / "cloud" / f"{name}.npz", features=True) for name in NAMES]


def test_every_program_is_tried_once(tables: list[Table]) -> None:
    clouds = [Cloud.of(table) for table in tables[:2]]
    uses = np.ones(len(clouds))
    every = sum(len(cloud.seconds) for cloud in clouds)
    course = replay(clouds, WAYS["a forest a family, trials for siblings"], uses, every, seed=0)
    assert (np.diff(course) <= 0).all()
    assert course[-1] == pytest.approx(sum(cloud.seconds[cloud.ran].min() for cloud in clouds))


def test_a_seed_decides(tables: list[Table]) -> None:
    clouds = [Cloud.of(table) for table in tables]
    courses = [replay(clouds, WAYS["the same, families shuffled"], np.ones(len(clouds)), 16, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(courses[0], courses[1])
    assert not np.array_equal(courses[0], courses[2])


def test_families_are_of_one_operation(tables: list[Table]) -> None:
    kinds = [Cloud.of(table).info.family for table in tables]
    assert kinds[0] == kinds[1] != kinds[2] == kinds[3]


def test_the_tables_of_both(tables: list[Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "TASKS", 3)
    monkeypatch.setattr(families, "TRIALS", 6)
    found = families.experiment(tables, models=1, seed=0)
    assert [row[0] for row in found.rows] == list(WAYS)
    assert float(found.rows[0][2]) == 1
    assert found.notes[-1].endswith(("met.", "missed."))

    monkeypatch.setattr("ansorlite.tuner.base_model.ENOUGH", 20)
    grid = read(tables_in(TABLES, Kind.GRID)[NAMES[2]], features=True)
    compared = transfer.experiment({NAMES[2]: grid}, tables, seeds=1)
    assert [row[0] for row in compared.rows] == [NAMES[2], "the median of the ratios"]
    groups = list(transfer.groups_of(grid))
    assert sum(len(group.latencies) for group in groups) == len(np.unique(grid.key))


def test_too_few_programs_for_a_base_are_one_sentence(tmp_path: Path) -> None:
    for kind in ("grid", "cloud"):
        (tmp_path / kind).mkdir()
        for path in (TABLES / kind).glob(f"{NAMES[2]}*"):
            (tmp_path / kind / path.name).write_bytes(path.read_bytes())
    done = CliRunner().invoke(main, ["transfer", "--folder", str(tmp_path), "--results", str(tmp_path / "r.json")])
    assert done.exit_code == 1
    assert "a base model takes 500 programs of other tasks, and there are 0" in done.output
    assert kept(tmp_path / "r.json") == {}


def test_schedulers_are_replayed_on_the_same_curves(tables: list[Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = [sharing.Curve.of(Cloud.of(table), np.random.default_rng(0)) for table in tables]
    for curve, table in zip(curves, tables, strict=True):
        assert curve.best[-1] == pytest.approx(table.best)
        assert (np.diff(curve.best) <= 0).all()
        assert len(curve.best) == len(curve.spent) + 1
    uses = np.array([1.0, 4.0, 2.0, 1.0])
    every = sum(len(curve.spent) for curve in curves)
    for make in SCHEDULERS.values():
        course = sharing.replay(curves, make, uses, every)
        assert (np.diff(course) <= 0).all()
        assert course[-1] >= float(uses @ [curve.best[-1] for curve in curves]) * (1 - 1e-9)
    monkeypatch.setattr(sharing, "TASKS", 3)
    monkeypatch.setattr(sharing, "TRIALS", 8)
    monkeypatch.setattr(sharing, "SEARCHES", 1)
    (tmp_path / "cloud").mkdir()
    for name in NAMES:
        for path in (TABLES / "cloud").glob(f"{name}.*"):
            (tmp_path / "cloud" / path.name).write_bytes(path.read_bytes())
    words = ["schedulers", "--models", "2", "--folder", str(tmp_path), "--results", str(tmp_path / "r.json")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    (table,) = kept(tmp_path / "r.json").values()
    assert {row[0]: row[1] for row in table.rows}.keys() == SCHEDULERS.keys()
    assert next(row[1] for row in table.rows if row[0] == sharing.IN_TURNS) == "1.000"
    assert table.notes[-1].endswith(("met.", "missed."))
