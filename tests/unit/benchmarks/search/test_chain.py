"""The whole way of a table: recorded, imported, described, searched and judged, command by command."""

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from benchmarks.search.__main__ import main
from benchmarks.search.table import Kind, read

CASE = "matmul 17x1009x331"


def foreign(path: Path) -> None:
    """A file as benchmark_hub has them: two knobs and one that decides nothing, a setting that failed."""
    settings = [(x, y) for x in (1, 2, 4, 8, 16, 32) for y in ("row", "column")]
    cache = {
        f"{x},{y},1": {"x": x, "y": y, "z": 1, "time": 1.0 + abs(x - 8) + (y == "row"), "times": [1.0, 2.0]} for x, y in settings
    }
    cache["1,row,1"]["time"] = "RuntimeFailedConfig"
    facts = {
        "kernel_name": "copy",
        "device_name": "GPU",
        "tune_params": {"x": [1, 2, 4, 8, 16, 32], "y": ["row", "column"], "z": [1]},
    }
    path.write_text(json.dumps({**facts, "cache": cache}))


def said(*words: str) -> str:
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_from_programs_to_the_page(tmp_path: Path) -> None:
    folder = ("--folder", str(tmp_path / "tables"))
    recording = ("record", "--case", CASE, "--programs", "6", "--searched", "3", *folder)
    assert " rows, " in said(*recording)
    path = tmp_path / "tables" / "grid" / "odd_matmul_17x1009x331.npz"
    grid = read(path, features=True)
    assert grid.meta.kind is Kind.GRID
    assert grid.ran.any()
    assert grid.features is not None
    said("describe", *folder)
    again = read(path, features=True)
    assert again.features is not None
    np.testing.assert_array_equal(again.seconds, grid.seconds)
    assert again.features.shape == grid.features.shape

    foreign(tmp_path / "GPU.json")
    assert "12 rows, 11 of them ran" in said("import", str(tmp_path / "GPU.json"), *folder)

    results = ("--results", str(tmp_path / "results.jsonl"))
    runs = ("run", "--preset", "default", "--preset", "random", "--seeds", "2", "--trials", "32", *results, *folder)
    assert "8 runs, 0 were known" in said(*runs)
    assert "0 runs, 8 were known" in said(*runs)
    page = tmp_path / "page.md"
    said("page", "--trials", "32", "--output", str(page), *results, *folder)
    text = page.read_text()
    assert "| default | " in text
    assert "| random | " in text
    assert "| odd_matmul_17x1009x331 | grid | " in text
    assert "| GPU | foreign | 12 | 12 | 8.3% | " in text
