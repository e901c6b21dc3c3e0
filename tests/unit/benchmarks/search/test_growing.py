"""Clouds that grow in parts: evenly, within bounds, and on from where a run ended."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.search.__main__ import main
from benchmarks.search.table import Kind, read, tables_in

#: Programs of a step: of so many some are not stopped for being slow.
STEP = 8
CASES = ("odd", "sum of rows 509x1009"), ("memory", "transpose add 1024x1024")


def grown(folder: Path, *words: str) -> Result:
    cases = [word for _, case in CASES for word in ("--case", case)]
    done = CliRunner().invoke(main, ["grow", "--folder", str(folder), "--step", str(STEP), *cases, *words])
    assert done.exit_code == 0, done.output
    return done


def sizes(folder: Path) -> list[int]:
    return [len(read(path)) for path in tables_in(folder, Kind.CLOUD).values()]


def test_clouds_grow_evenly_and_go_on(tmp_path: Path) -> None:
    said = grown(tmp_path, "--programs", str(2 * STEP)).stdout
    assert sizes(tmp_path) == [STEP, STEP]
    assert said.startswith(f"there are as many as were asked for: {2 * STEP} programs of 2 tasks")
    before = {name: read(path) for name, path in tables_in(tmp_path, Kind.CLOUD).items()}
    done = grown(tmp_path, "--programs", str(3 * STEP))
    assert sorted(sizes(tmp_path)) == [STEP, 2 * STEP]
    assert "hours for the" not in done.stdout
    for name, path in tables_in(tmp_path, Kind.CLOUD).items():
        after = read(path)
        places = [after.places[trace] for trace in before[name].traces]
        assert after.seconds[places].tolist() == before[name].seconds.tolist(), "what was measured is kept"
    readings = list(tmp_path.rglob("*.jsonl"))
    assert [len(path.read_text().splitlines()) for path in readings] == [1, 1], "the others are in the clouds"
    # A run that is killed while it takes up a cloud again has written some of it.
    readings[0].write_text(readings[0].read_text() + readings[0].read_text())
    grown(tmp_path, "--programs", str(4 * STEP))
    assert sizes(tmp_path) == [2 * STEP, 2 * STEP]
    other = tmp_path / "other"
    assert "the time is up" in grown(other, "--begin", str(tmp_path), "--seconds", "0").stdout
    assert sizes(other) == [2 * STEP, 2 * STEP]


@pytest.mark.parametrize(("bound", "why"), [("--megabytes", "at its bound of 0 MiB"), ("--seconds", "the time is up")])
def test_bounds_are_kept(tmp_path: Path, bound: str, why: str) -> None:
    assert why in grown(tmp_path, bound, "0").stdout
    assert sizes(tmp_path) == []
