"""The page, from a small table."""

from pathlib import Path

from click.testing import CliRunner

from benchmarks.search.__main__ import main
from benchmarks.search.table import Kind, write
from tests.unit.benchmarks.search.support import small_table


def test_runs_are_made_once_and_shown(tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    write(small_table(kind=Kind.FOREIGN), tmp_path / "foreign" / "valley.npz")
    where = ["--folder", str(tmp_path), "--results", str(tmp_path / "r.jsonl")]
    words = ["run", "--preset", "random", "--preset", "descent", *where]
    assert CliRunner().invoke(main, words).exit_code == 2  # a strategy, and no preset
    words = ["run", "--preset", "random", "--preset", "droplet", "--seeds", "10", *where]
    assert "20 runs, 0 were known" in CliRunner().invoke(main, words).stderr
    assert "0 runs, 20 were known" in CliRunner().invoke(main, words).stderr
    page = tmp_path / "page.md"
    done = CliRunner().invoke(main, ["page", "--output", str(page), *where])
    assert done.exit_code == 0, done.output
    assert "| valley | " in page.read_text()
    assert "| droplet | " in page.read_text()


def test_a_damaged_table_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "bad.npz").write_bytes(b"nothing")
    done = CliRunner().invoke(main, ["run", "--folder", str(tmp_path), "--results", str(tmp_path / "r.jsonl")])
    assert done.exit_code == 1
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
