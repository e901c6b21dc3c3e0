"""Where code has changed but not what it does, runs count again; where it does something else, they do not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.search.__main__ import main
from benchmarks.search.results import Results
from benchmarks.search.source import stripped
from benchmarks.search.table import write
from tests.unit.benchmarks.search.support import small_table

_LOCAL = ("--preset", "local", "--seeds", "3")


def _runs_of_before(folder: Path, same: bool) -> tuple[list[str], Path]:
    """Three runs on a small table that other code made: how to name them, and their file."""
    (folder / "tables" / "grid").mkdir(parents=True)
    write(small_table(), folder / "tables" / "grid" / "t.npz")
    results = folder / "results.jsonl"
    where = ["--folder", str(folder / "tables"), "--results", str(results), "--trials", "20"]
    assert _output("run", *where, *_LOCAL) == "3 runs, 0 were known\n"
    rows = [{**json.loads(line), "digest": "of before"} for line in results.read_text().splitlines()]
    if not same:
        rows[0]["bests"][-1][1] *= 0.5
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return where, results


def _output(*arguments: str) -> str:
    said = CliRunner().invoke(main, arguments)
    assert said.exit_code == 0, said.output
    return said.output


@pytest.mark.parametrize("same", [True, False])
def test_runs_of_other_code_count_where_a_few_come_out_the_same(tmp_path: Path, same: bool) -> None:
    where, results = _runs_of_before(tmp_path, same)
    verdict = "as before: 3 runs count" if same else "not as before: run it anew, or confirm with --anew"
    dropped = "1 runs of other code, made again since, are dropped\n" if same else ""
    assert _output("confirm", *where) == f"local: 1 runs made again, {verdict}\n{dropped}"
    assert ("of before" in {row.digest for row in Results(results).rows}) is not same
    if same:
        assert _output("run", *where, *_LOCAL) == "0 runs, 3 were known\n"
    else:
        # What is known is compared again, and nothing else is made.
        assert _output("confirm", *where) == f"local: 1 runs made again, {verdict}\n"
        assert _output("run", *where, *_LOCAL) == "2 runs, 1 were known\n3 runs of other code, made again since, are dropped\n"
    assert len(Results(results).rows) == 3
    assert _output("confirm", *where) == ""


def test_what_is_not_as_it_was_is_made_anew(tmp_path: Path) -> None:
    where, results = _runs_of_before(tmp_path, same=False)
    late = _output("confirm", *where, "--anew", "--seconds", "0")
    assert (late, len(Results(results).rows)) == ("the time is up; the same command goes on\n", 3)
    dropped = "3 runs of other code, made again since, are dropped\n"
    assert _output("confirm", *where, "--anew") == f"local: 1 runs made again, not as before: 2 more made anew\n{dropped}"
    assert [row.seed for row in Results(results).rows] == [0, 1, 2]
    assert _output("run", *where, *_LOCAL) == "0 runs, 3 were known\n"


def test_runs_are_dropped_only_when_nobody_needs_them(tmp_path: Path) -> None:
    _, results = _runs_of_before(tmp_path, same=True)
    runs = Results(results)
    for row in runs.rows[:2]:
        runs.add(replace(row, digest="of today"))
    assert runs.drop_superseded({"of today"}) == 0  # one was not made again
    runs.add(replace(runs.rows[2], digest="of today"))
    assert runs.drop_superseded({"of today", "of before"}) == 0  # another preset has the same
    assert runs.drop_superseded({"of today"}) == 3
    assert [row.digest for row in Results(results).rows] == ["of today"] * 3


def test_words_make_no_run_another_one() -> None:
    source = """
'''Of a module.'''

import os  # for people

# Alone.
NAME = "# no comment"
TEXT = \"\"\"One line,

and another.\"\"\"


class Room:
    \"\"\"What it is.

    At length.
    \"\"\"

    def enter(self) -> str:  # nobody does
        'In short.'
        return f"{NAME}#"
"""
    assert (
        stripped(source)
        == '''import os
NAME = "# no comment"
TEXT = """One line,

and another."""
class Room:
    def enter(self) -> str:
        return f"{NAME}#"
'''
    )
