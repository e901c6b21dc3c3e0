"""What the pages say of strategies, schedulers, cost models and measurers in files of one's own: they go by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import ansorlite as al
from ansorlite.cli import main
from tests.docs.test_code_blocks import BLOCK, ROOT
from tests.workloads import matmul

KERNELS = "from tests.workloads import matmul\n\n\ndef product():\n    return matmul(16, 32, 8)\n"


def first_block(page: str) -> str:
    found = BLOCK.search((ROOT / "docs" / page).read_text())
    assert found is not None
    return found[1]


def write(folder: Path) -> None:
    """A file of each page's first block, and of what makes it."""
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "my_search.py").write_text(first_block("adding_a_strategy.md"))
    (folder / "my_scheduler.py").write_text(first_block("adding_a_scheduler.md"))
    ridges = "\n\ndef ridges(tasks, rng):\n    return [Ridge() for _ in tasks]\n"
    (folder / "my_model.py").write_text(first_block("adding_a_cost_model.md") + ridges)
    table = "\n\ndef table(target, settings):\n    return Replay('measured.db')\n"
    (folder / "my_table.py").write_text(first_block("adding_a_measurer.md") + table)


def tuned(*words: str) -> dict[str, object]:
    arguments: Sequence[str] = ("tune", "kernels.py:product", "--trials", "12", "--json", *words)
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def test_parts_of_tuning_go_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    own = ("--strategy", "my_search.py:HillClimbing", "--scheduler", "my_scheduler.py:LongestFirst")
    measured = tuned(*own, "--database", "measured.db")
    replayed = tuned(*own, "--database", "replayed.db", "--measurer", "my_table.py:table")
    assert replayed["tasks"] == measured["tasks"]
    result = al.tune(
        al.Task(matmul(16, 32, 8)),
        trials=8,
        cost_model="my_model.py:ridges",
        database=tmp_path / "t.db",
        progress=False,
    )
    assert result.trials == 8


def test_spaces_go_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    (tmp_path / "my_space.py").write_text("def tiled(s):\n    i = s.stage('C')['i']\n    s.split(i, s.sample_tile(i, parts=2))\n")
    tuned("--space", "my_space.py:tiled", "--database", "t.db")
    with al.Database("t.db") as database:
        traces = [record.measurement.candidate.trace for record in database.records()]
    assert sum('s.split(C["i"]' in trace for trace in traces) > 2
    assert not any("s.vectorize" in trace for trace in traces)


def test_examples_stay_short() -> None:
    for page in ("adding_a_strategy.md", "adding_a_scheduler.md", "adding_a_cost_model.md", "adding_a_measurer.md"):
        assert len(first_block(page).splitlines()) <= 50
