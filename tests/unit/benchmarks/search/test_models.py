"""Recorded tables as a data set, and cost models judged on them."""

import math
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ansorlite.cost_model.views import View
from ansorlite.dataset import read_corpus
from ansorlite.features import NUM_FEATURES
from ansorlite.features.loop_tree import TREE
from ansorlite.features.tokens import TOKEN
from ansorlite.search.protocol import SearchProblem
from benchmarks.search import models as judging
from benchmarks.search import told
from benchmarks.search.__main__ import TABLES, main
from benchmarks.search.entries import entry_of
from benchmarks.search.kept import kept
from benchmarks.search.space import problem_of
from benchmarks.search.table import Kind, TableError, read

from .support import small_table

GRID = TABLES / "grid" / "odd_matmul_17x1009x331.npz"
CLOUDS = ("odd_softmax_331x1009", "bert_layer_norm_128x768")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of two small clouds."""
    (tmp_path / "tables" / "cloud").mkdir(parents=True)
    for name in CLOUDS:
        for path in (TABLES / "cloud").glob(f"{name}.*"):
            shutil.copy(path, tmp_path / "tables" / "cloud")
    return tmp_path / "tables"


def test_an_entry_says_what_the_table_says() -> None:
    table = read(TABLES / "cloud" / f"{CLOUDS[0]}.npz", features=True)
    entry = entry_of(table)
    assert len(entry) == len(np.unique(table.key))
    assert entry.origin == "odd"
    features = dict(zip(table.traces, table.features, strict=True))
    seconds = dict(zip(table.traces, table.seconds.tolist(), strict=True))
    close = []
    for part in entry.parts:
        for trace, latency, own in zip(part.traces, part.latencies.tolist(), part.views[View.FEATURES], strict=True):
            assert latency == seconds[trace]
            close.append(np.isclose(own, features[trace][: len(own)], rtol=2e-3, atol=1e-3))
    # Traffic of a program by itself is not in all cases what it is as a row of a sketch.
    assert np.mean(close) > 0.99
    few = entry_of(table, 6)
    assert len(few) in (6, 7)
    assert few.latencies.min() == entry.latencies.min()


def test_models_see_tables_as_they_see_programs() -> None:
    table = read(GRID, features=True)
    for space in problem_of(table).spaces:
        rows = space.space.sample(5, np.random.default_rng(0))
        programs = space.programs(rows)
        assert (programs.features.shape[2], programs.tokens.shape[2]) == (NUM_FEATURES, len(TOKEN))
        assert programs.loops.array.shape[2] == len(TREE)
        np.testing.assert_allclose(
            programs.features, programs.shown.programs(space.space.positions(rows)).features, rtol=2e-3, atol=1e-3
        )


def test_of_what_is_not_ours_loops_are_not_known() -> None:
    problem: SearchProblem = problem_of(small_table(kind=Kind.FOREIGN))
    programs = problem.spaces[0].programs(np.zeros((1, 3), np.int64))
    with pytest.raises(TableError, match="are not ours"):
        _ = programs.tokens


def test_the_commands(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[learn]'")
    made = CliRunner().invoke(main, ["corpus", "--folder", str(folder), "-o", str(tmp_path / "corpus"), "--programs", "5"])
    assert made.exit_code == 0, made.output
    assert len(read_corpus(tmp_path / "corpus")) == 2
    results = tmp_path / "models.jsonl"
    words = ["models", "--folder", str(folder), "--results", str(results), "--programs", "8", "--epochs", "1", "--folds", "2"]
    names = ["--model", "draft", "--model", "tenset-mlp", "--model", "tlp"]
    judged = CliRunner().invoke(main, [*words, *names])
    assert judged.exit_code == 0, judged.output
    rows = judging.kept(results)
    assert {(row.split, row.model) for row in rows} == {
        (split, model) for split in ("within_task", "by_task", "by_origin") for model in ("draft", "tenset-mlp", "tlp")
    }
    CliRunner().invoke(main, [*words, *names])
    assert judging.kept(results) == rows, "what is known is not judged again"
    titles = [title for title, _ in judging.tables(rows)]
    assert titles[-1] == "Cost models, what was to be shown"
    assert len(judging.tables(rows)[-1][1].rows) == 3
    shown = CliRunner().invoke(main, ["prior", "--folder", str(folder), "--programs", "24", "--epochs", "1", "--folds", "2"])
    assert shown.exit_code == 0, shown.output
    assert "16 measured: today's model" in shown.output


def test_seconds_of_tasks_that_were_not_seen(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'ansorlite[learn]'")
    words = ["seconds", "--folder", str(folder), "--results", str(tmp_path / "r.json"), "--programs", "24", "--epochs", "1"]
    done = CliRunner().invoke(main, [*words, "--folds", "2"])
    assert done.exit_code == 0, done.output
    (table,) = kept(tmp_path / "r.json").values()
    assert [row[0] for row in table.rows] == [told.NETWORK, told.DRAFT, told.CONSTANT]
    assert all(float(cell.rstrip("%")) > 0 for row in table.rows for cell in row[1:])
    assert table.notes[0].startswith("2 tasks that were left out, in 2 folds")


def test_claims_are_met_or_missed() -> None:
    settings = judging.Settings(8, 1, 2, 0)

    def row(model: str, top: float, batch: float) -> judging.Row:
        found = {"pairwise": 0.8, "top 1": top, judging.BATCH: batch}
        return judging.Row("by_task", model, settings, found, (1.0, 1.0), 2, 8.0, 0.1)

    rows = [row("draft", 0.9, 0.8), row("tenset-mlp", 0.8, 0.1), row("tlp", 0.79, 0.1), row("one-shot", 0.5, 0.9)]
    assert [cells[-1] for cells in judging.tables(rows)[-1][1].rows] == ["met", "missed", "met", "met"]
    assert judging.tables([]) == []
    assert not any(math.isnan(value) for value in asdict(rows[0])["mean"].values())


def test_a_damaged_file_of_results_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "models.jsonl"
    results.write_text('{"split": 3}\n')
    words = ["models", "--folder", str(folder), "--results", str(results), "--programs", "4", "--model", "draft"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "delete it, and judge them again" in done.output
