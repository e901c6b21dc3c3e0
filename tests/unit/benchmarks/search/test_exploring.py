"""Explorers at equal calls of a model."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.search import exploring
from benchmarks.search.__main__ import TABLES, main
from benchmarks.search.kept import kept
from benchmarks.search.space import problem_of
from benchmarks.search.table import read

NAME = "odd_matmul_197x197x197"


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
