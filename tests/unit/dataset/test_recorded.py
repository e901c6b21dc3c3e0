"""From databases to data sets."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ansorlite as al
from ansorlite.cost_model.views import View
from ansorlite.dataset import entries_of, read_corpus
from ansorlite.dataset.__main__ import main
from ansorlite.records import Database, Measurement, Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import host
from tests.workloads import matmul

from .support import candidates, task


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Eight programs of a task: one failed, one was measured twice, one is none; and a task of which none ran."""
    path = tmp_path / "t.db"
    with Database(path) as database:
        own = task()
        for number, candidate in enumerate(candidates(own, 3)[:8]):
            failed = number == 2
            outcome = Outcome.CRASH if failed else Outcome.OK
            database.add(
                own, Measurement(candidate, outcome, f"{number:02x}", None if failed else 1e-3 * (number + 1), not failed)
            )
        slower = Measurement(candidates(own, 3)[4], Outcome.OK, "04", 9.0, True, when=1.0)
        database.add(own, slower)
        database.add(own, Measurement(Candidate("def schedule(s):\n    s.nothing()"), Outcome.OK, "ff", 1e-9, True))
        database.add(task(24), Measurement(candidates(task(24), 1)[0], Outcome.CRASH, "00"))
        other = al.Task(matmul(16, 8, 12), host(2))
        database.add(other, Measurement(candidates(other, 1)[0], Outcome.OK, "00", 1e-3, True))
    return path


def test_each_program_once_with_its_least_seconds(recorded: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Database(recorded) as database, caplog.at_level(logging.WARNING):
        (found,) = entries_of(database, [host(1)], "net")
    assert sorted(found.latencies[np.isfinite(found.latencies)].tolist()) == pytest.approx(
        [1e-3 * k for k in (1, 2, 4, 5, 6, 7, 8)]
    )
    assert np.isinf(found.latencies).sum() == 1
    assert (found.origin, found.device, found.task.key) == ("net", host(1).key, task().key)
    assert {group.task for group in found.groups(View.TOKENS)} == {task().key}
    told = caplog.text
    assert "1 records of" in told
    assert "none of its programs ran" in told
    assert "name that target to have them" in told


def test_the_command_makes_a_data_set(recorded: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(recorded), "-o", str(tmp_path / "corpus")])
    assert done.exit_code == 0, done.output
    assert {each.device for each in read_corpus(tmp_path / "corpus")} >= {host(1).key}


def test_mistakes_are_one_sentence(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    for words, told in (
        ([str(tmp_path / "none.db"), "-o", "c"], "none.db"),
        ([str(tmp_path / "text"), "-o", "c"], "text"),
        ([str(recorded), "-o", "c", "--target", "nonsense"], "nonsense"),
        ([str(recorded), "-o", "c", "--target", "llvm -mcpu=cortex-a72"], ""),
        ([str(recorded), "-o", str(tmp_path / "text" / "corpus")], "cannot be written"),
    ):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 1, done.output
        assert told in done.output
        assert "Traceback" not in done.output
