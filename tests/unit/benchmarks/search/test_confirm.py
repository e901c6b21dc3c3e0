"""Where code has changed but not what it does, runs count again; where it does something else, they do not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.search.__main__ import main
from benchmarks.search.results import Results
from benchmarks.search.table import write
from tests.unit.benchmarks.search.support import small_table


@pytest.mark.parametrize("same", [True, False])
def test_runs_of_other_code_count_where_a_few_come_out_the_same(tmp_path: Path, same: bool) -> None:
    (tmp_path / "tables" / "grid").mkdir(parents=True)
    write(small_table(), tmp_path / "tables" / "grid" / "t.npz")
    results = tmp_path / "results.jsonl"
    where = ["--folder", str(tmp_path / "tables"), "--results", str(results), "--trials", "20"]
    run = ["run", *where, "--preset", "local", "--seeds", "3"]
    assert CliRunner().invoke(main, run).output == "3 runs, 0 were known\n"
    rows = [{**json.loads(line), "digest": "of before"} for line in results.read_text().splitlines()]
    if not same:
        rows[0]["bests"][-1][1] *= 0.5
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = CliRunner().invoke(main, ["confirm", *where])
    assert said.exit_code == 0, said.output
    assert said.output == f"local: 1 runs made again, {'as before: 3 runs count' if same else 'not as before: run it anew'}\n"
    assert ("of before" in {row.digest for row in Results(results).rows}) is not same
    assert CliRunner().invoke(main, run).output == ("0 runs, 3 were known\n" if same else "3 runs, 0 were known\n")
    assert CliRunner().invoke(main, ["confirm", *where]).output == ""
