"""The long runs of ``benchmarks/reliability``, seconds of each: they find nothing, and would."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from ansorlite.te.dag import ComputeDAG
from benchmarks.reliability import programs
from benchmarks.reliability.results import Findings, Run, results_file, total
from benchmarks.reliability.supervise import attempt_here, supervise


def test_programs() -> None:
    found = attempt_here(programs.attempt_with(0.2, computations=2), 3)
    assert found.failures == ()
    assert found.counts[programs.INTERPRETED] == 2 * found.counts[programs.PROGRAMS] > 10
    assert found.counts[programs.COMPILED] > 0
    again = attempt_here(programs.attempt_with(0.2, computations=2), 3)
    assert again == found


def test_a_wrong_value_is_a_failure_with_what_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(dag: ComputeDAG, *_: object) -> list[np.ndarray]:
        return [np.zeros(tensor.shape, tensor.dtype) for tensor in dag.outputs]

    monkeypatch.setattr(programs, "_compiled", wrong)
    found = attempt_here(programs.attempt_with(1.0, computations=1), 3)
    assert found.failures
    assert "differs in" in found.failures[0]
    assert "To see it again" in found.failures[0]


def _odd_ones_die(number: int, folder: Path) -> Findings:
    assert list(folder.iterdir()) == []
    if number % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return Findings({"checks": 10}, ("bad",) if number == 2 else ())


def test_attempts_add_up_over_runs_and_a_process_that_dies_is_a_failure(tmp_path: Path) -> None:
    told: list[Run] = []
    for goal in (5, 15):
        file = results_file(tmp_path / "results.jsonl")
        supervise("some", _odd_ones_die, {"checks": goal}, file, processes=1, listener=told.append)
    file = results_file(tmp_path / "results.jsonl")
    assert file.rows == told
    assert [run.number for run in told] == [0, 1, 2]
    assert total(told) == {"checks": 20}
    assert [bool(run.failures) for run in told] == [False, True, True]
    assert "SIGKILL" in told[1].failures[0]
