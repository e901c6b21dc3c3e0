"""Explorers at equal calls of a model."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.search import exploring, values
from benchmarks.search.__main__ import TABLES, main
from benchmarks.search.kept import kept
from benchmarks.search.space import problem_of
from benchmarks.search.table import read

NAME = "odd_matmul_197x197x197"
OTHER = "odd_matmul_17x1009x331"


def test_a_seed_decides_and_what_was_scored_later_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = read(TABLES / "grid" / f"{NAME}.npz", features=True)
    problem = problem_of(table)
    found = exploring.explored(table, problem, 0)
    assert found == exploring.explored(table, problem, 0)
    assert found.keys() == exploring.COMPARED.keys()
    assert all(each.best >= each.pool for each in found.values())
    monkeypatch.setattr(exploring, "CALLS", exploring.POOL)
    early = exploring.explored(table, problem, 0)
    assert all(early[name].pool <= found[name].pool for name in found)
    (tmp_path / "grid").mkdir()
    for path in (TABLES / "grid").glob(f"{NAME}.*"):
        (tmp_path / "grid" / path.name).write_bytes(path.read_bytes())
    words = ["explorers", "--seeds", "1", "--folder", str(tmp_path), "--results", str(tmp_path / "r.json")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    (grid,) = kept(tmp_path / "r.json").values()
    assert [row[0] for row in grid.rows] == [NAME]
    assert all(note.endswith(("met.", "missed.")) for note in grid.notes[1:])


def test_values_of_other_grids_pick_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[learn]'")
    monkeypatch.setattr(values, "LEARNT", 32)
    table = read(TABLES / "grid" / f"{NAME}.npz")
    told, best, space = values.examples(table, np.random.default_rng(0))
    assert told.shape[:2] == best.shape == (32, len(space.sizes))
    assert (np.diff(best, axis=1) <= 0).all(), "with each choice there is less to come"
    (tmp_path / "grid").mkdir()
    for name in (NAME, OTHER):
        for path in (TABLES / "grid").glob(f"{name}.*"):
            (tmp_path / "grid" / path.name).write_bytes(path.read_bytes())
    words = ["values", "--epochs", "1", "--folder", str(tmp_path), "--results", str(tmp_path / "r.json")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    (grid,) = kept(tmp_path / "r.json").values()
    assert {row[0] for row in grid.rows} == {NAME, OTHER, "geometric mean"}
    assert all(0 <= float(cell) <= 1 for row in grid.rows for cell in row[1:])
