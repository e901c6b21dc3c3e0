"""What a board says of itself becomes a target, and is not believed to be more than words and numbers."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ansorlite import processor
from ansorlite.cli.main import main
from ansorlite.errors import TargetError, TuningError
from ansorlite.measure.board import probe as probing
from ansorlite.measure.board.probe import probe
from ansorlite.target import LEVELS, resolve, this_machine
from tests.unit.measure import boards

PI = {
    "architecture": "aarch64",
    "name": "0xd08",
    "sets": ["fp", "asimd", "evtstrm", "crc32"],
    "cores": 4,
    "caches": [32 << 10, 1 << 20, 0],
    "sve_bytes": 0,
    "python": "3.11.2",
    "numpy": "2.1.0",
}
NEWER = [*PI["sets"], "atomics", "asimdrdm", "asimddp", "asimdhp"]  # type: ignore[misc]


def told(monkeypatch: pytest.MonkeyPatch, said: object) -> None:
    monkeypatch.setattr(probing, "said_by", lambda *_: said)


def test_a_board_with_nothing_but_python_says_what_it_is(tmp_path: Path) -> None:
    found = probe(f"popen://{boards.bare_python(tmp_path)}")
    here = this_machine()
    assert found.target.architecture == here.architecture
    assert (found.target.threads, found.target.l1, found.name) == (here.threads, here.l1, processor.name())
    assert found.numpy == np.__version__
    assert asdict(found.target)["features"] == LEVELS[found.level].features


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        ({}, "aarch64"),
        ({"sets": NEWER}, "aarch64+dotprod"),
        ({"sets": [*NEWER, "bf16", "i8mm"]}, "aarch64+bf16"),
        ({"sets": [*NEWER, "sve"], "sve_bytes": 32}, "aarch64+sve"),
        ({"sets": [*NEWER, "sve"], "sve_bytes": 16}, "aarch64+dotprod"),
    ],
)
def test_it_becomes_the_target_that_has_most_of_its_instructions(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], level: str
) -> None:
    told(monkeypatch, {**PI, **changed})
    found = probe("ssh://pi@board")
    assert (found.level, found.target.threads) == (level, 4)
    assert (found.target.l1, found.target.l2, found.target.l3) == (32 << 10, 1 << 20, LEVELS[level].l3)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ("rubbish", TuningError, "it sends no facts"),
        ({}, TuningError, "does not describe itself"),
        ({**PI, "cores": 0}, TuningError, "'0' is no number from 1 to 4096"),
        ({**PI, "cores": True}, TuningError, "'True' is no number"),
        ({**PI, "caches": [1, 2]}, TuningError, "does not describe itself"),
        ({**PI, "caches": [1, 2, -1]}, TuningError, "'-1' is no number"),
        ({**PI, "sets": [1]}, TuningError, "its instruction sets are no words"),
        ({**PI, "name": "x" * 1000}, TuningError, "is no word"),
        ({**PI, "architecture": "riscv64"}, TargetError, r"no programs are made for such a board \(riscv64\)"),
        ({**PI, "sets": []}, TargetError, "it lacks what the least of aarch64, "),
    ],
)
def test_a_board_that_says_something_else_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, said: object, error: type[Exception], words: str
) -> None:
    told(monkeypatch, said)
    with pytest.raises(error, match=words):
        probe("ssh://pi@board")


def test_a_board_that_cannot_be_reached_is_one_sentence() -> None:
    with pytest.raises(TuningError, match="the board popen:///nowhere/python cannot be reached"):
        probe("popen:///nowhere/python")


def test_the_command_writes_a_target_that_other_commands_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boards.fake_ssh(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    python, file = boards.bare_python(tmp_path), tmp_path / "board.json"
    done = CliRunner().invoke(main, ["target", "--probe", f"ssh://pi@board/{python}", "-o", str(file), "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    found = resolve(str(file))
    assert (facts["numpy"], facts["key"], facts["file"]) == (np.__version__, found.key, str(file))
    assert facts["threads"] == found.threads == this_machine().threads
    shown = CliRunner().invoke(main, ["target", "--target", str(file)])
    assert found.key in shown.output.replace("\n", " ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"kind": "target"}',
        '{"kind": "target", "name": "my cpu", "threads": 1, "l1": 1, "l2": 1, "l3": 1}',
        '{"kind": "target", "name": "aarch64", "threads": 0, "l1": 1, "l2": 1, "l3": 1}',
        '{"kind": "target", "name": "aarch64", "threads": "1", "l1": 1, "l2": 1, "l3": 1}',
        '{"kind": "target", "name": ["aarch64"], "threads": 1, "l1": 1, "l2": 1, "l3": 1}',
        '{"kind": "target", "name": "aarch64", "threads": 1, "l1": 1, "l2": 1, "l3": 1, "more": 1}',
        "[" * 5000,
    ],
)
def test_a_file_with_something_else_is_no_target(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TargetError, match=r"t\.json does not say what a target is"):
        resolve(str(tmp_path / "t.json"))
