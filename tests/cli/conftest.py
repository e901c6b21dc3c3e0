"""A kernel file as a user would write it, and ways to call the command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ansorlite.cli import main
from tests.interrupts import PYTHON_M

#: A small task, tuned for a few trials.
TUNE = ("tune", "kernels.py:matmul", "--args", 16, 16, 16, "--trials", 4, "--database", "t.db")

KERNELS = """
from ansorlite import te

print("this file prints when it is imported")


def matmul(m, n, k):
    a = te.placeholder((m, k), name="a")
    b = te.placeholder((k, n), name="b")
    r = te.reduce_axis(k, name="r")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def scale():
    a = te.placeholder((64,), name="a")
    return [a, te.compute((64,), lambda i: a[i] * 2.0, name="out")]


def wrong(n):
    a = te.placeholder((n,), name="a")
    return [a, te.compute((n,), lambda i: a[i, i], name="c")]


def buggy():
    return 1 / 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with ``kernels.py`` in it, to which commands are relative."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which ``TUNE`` has run; what it printed is in ``told.json``."""
    place = tmp_path_factory.mktemp("tuned")
    (place / "kernels.py").write_text(KERNELS)
    words = [sys.executable, "-m", "ansorlite", *map(str, TUNE), "--json"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=True)
    (place / "told.json").write_text(done.stdout)
    return place


@pytest.fixture
def database(folder: Path, tuned: Path) -> dict[str, Any]:
    """``t.db`` as ``TUNE`` left it, and what it told."""
    shutil.copy(tuned / "t.db", folder)
    told = json.loads((tuned / "told.json").read_text())
    assert isinstance(told, dict)
    return told


@pytest.fixture
def call(folder: Path) -> Callable[..., Result]:
    """Run the command in this process, in ``folder``."""
    assert Path.cwd() == folder
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def call_json(call: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """Run the command with ``--json`` in this process; it must succeed, and print one object and nothing else."""

    def run(*words: object) -> dict[str, Any]:
        result = call(*words, "--json")
        assert result.exit_code == 0, result.output
        value = json.loads(result.stdout)
        assert isinstance(value, dict)
        return value

    return run


@pytest.fixture
def start(folder: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start the command as a process of its own."""

    def begin(*words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PYTHON_M, "ansorlite", *map(str, words)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin
