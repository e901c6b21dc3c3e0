"""The long runs of ``benchmarks/reliability``, seconds of each: they find nothing, and would."""

from __future__ import annotations

import os
import signal
import zlib
from pathlib import Path

import numpy as np
import pytest

from ansorlite.cache.disk import DiskCache
from ansorlite.te.dag import ComputeDAG
from benchmarks.reliability import corruptions, disk, kills, planted, programs, soak
from benchmarks.reliability.page import SCENARIOS, page
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
    # Without a goal one attempt is made, however many processes there may be.
    assert len(supervise("another", _odd_ones_die, {}, results_file(None), processes=2, listener=told.append)) == 1


def test_kills() -> None:
    found = attempt_here(kills.attempt_with(2), 0)
    assert found.failures == ()
    assert found.counts == {kills.KILLS: 2}


def test_corruptions() -> None:
    found = attempt_here(corruptions.attempt_with(6, 12), 2)
    assert found.failures == ()
    assert found.counts == {corruptions.FILES: 6, corruptions.DATABASES: 12}


def test_a_cache_that_believes_anything_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # of programs that do not compile a database stays

    def believed(cache: DiskCache, key: str) -> bytes | None:
        file = cache._folder / key
        if not file.exists():
            return None
        os.utime(file)
        return zlib.decompressobj().decompress(file.read_bytes()[32:])

    monkeypatch.setattr(DiskCache, "get", believed)
    assert attempt_here(corruptions.attempt_with(6, 0), 0).failures


def test_full_disks() -> None:
    found = attempt_here(disk.attempt_with(1), 0)
    assert found.failures == ()
    assert found.counts == {disk.FULL: 1}


def test_soak() -> None:
    found = attempt_here(soak.attempt_with(0.05, kernels=8), 0)
    assert found.failures == ()
    assert found.counts[soak.CALLS] > 0 < found.counts[soak.CYCLES]


def test_the_page_counts_and_names_failures() -> None:
    runs = [
        Run("kills", number, {"kills": 6}, ("it broke",) * number, {"records": 9.0}, 60.0, "abc", "a processor", "llvm", 0.0)
        for number in range(2)
    ]
    text = page(runs)
    assert "| a processor (llvm) | `abc` | 1970-01-01 | 12 | 9 | 2.0 | 1 |" in text
    assert "it broke" in text
    assert text.count("Not run yet.") == len(SCENARIOS) - 1


@pytest.mark.parametrize("way", ["a file that its group may write", "a folder that anybody may write"])
def test_planted(way: str) -> None:
    found = attempt_here(planted.attempt_with(way), 0)
    assert found.failures == ()
    assert found.counts == {planted.PLANTED: 1}
