"""Several machines that time programs: one unit, one best, and what is lost with a machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from ansorlite.errors import TuningError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.measure.roles import Artifact, Built, Failure, LostError, Ran, Rival, Workers
from ansorlite.measure.verdict import Verdict
from ansorlite.records import Measurement, Outcome
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import host
from ansorlite.task import Task
from tests.unit.measure.tasks import matmul

SETTINGS = MeasureSettings(builders=1, wait_seconds=0.2, identical_failures=1000)


class FakeBuilder:
    size = 4

    def build(self, _task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        for candidate in candidates:
            if candidate.trace == "broken":
                yield Failure(candidate, Verdict(Outcome.COMPILE_ERROR, "broken"), 0.5, 1.0)
            else:
                yield Artifact(candidate, b"", 0.5, 1.0, f"key of {candidate.trace}")

    def close(self) -> None:
        pass


class FakeRunner:
    """A machine so many times slower than another. The trace of a candidate is its latency on that."""

    def __init__(self, machine: str, slowness: float = 1.0) -> None:
        self.machine = machine
        self.slowness = slowness
        self.ran: list[tuple[str, str | None]] = []
        self.dies_at: int | None = None
        self.revivals = 0
        self.closed = False

    def prepare(self, task: Task) -> None:
        pass

    def run(self, task: Task, artifacts: Sequence[Artifact], rival: Rival | None) -> list[Ran]:
        return [self._run(task, artifact, rival) for artifact in artifacts]

    def _run(self, task: Task, artifact: Artifact, rival: Rival | None) -> Ran:
        trace = artifact.candidate.trace
        if trace.startswith("def "):  # of a task that machines are compared by
            return Ran(Verdict(Outcome.OK), 1e-9 * task.dag.flops * self.slowness, 0.1)
        if rival is not None:  # it is what this machine has timed
            assert rival.now == pytest.approx(float(rival.artifact.candidate.trace) * self.slowness)
        self.ran.append((trace, None if rival is None else rival.artifact.candidate.trace))
        if self.dies_at is not None and len(self.ran) > self.dies_at:
            raise LostError("the cable was pulled")
        time.sleep(0.002)
        return Ran(Verdict(Outcome.OK), float(trace) * self.slowness, 0.1)

    def revive(self) -> bool:
        if self.revivals:
            self.revivals -= 1
            self.dies_at = None
            return True
        return False

    def close(self) -> None:
        self.closed = True


def opened(*runners: FakeRunner, settings: MeasureSettings = SETTINGS) -> Measurer:
    return Measurer(host(), settings, lambda _target, _settings: Workers(FakeBuilder(), runners))


def measured(measurer: Measurer, latencies: Sequence[object], best: Measurement | None = None) -> list[Measurement]:
    candidates = [Candidate(str(latency)) for latency in latencies]
    found = list(measurer.measure(matmul(), candidates, best))
    assert [m.candidate for m in found] == candidates
    assert [m.key for m in found] == ["" if latency == "broken" else f"key of {latency}" for latency in latencies]
    return found


LATENCIES = [9.0, 8.0, 10.0, 7.5, "broken", 7.0, 11.0, 6.5, 12.0, 13.0, 6.0, 5.0, 14.0, 15.0]


def test_equal_machines_share_candidates_and_each_has_timed_the_best() -> None:
    a, b = FakeRunner("a"), FakeRunner("b", 1.1)
    with opened(a, b) as measurer:
        found = measured(measurer, LATENCIES)
    assert {m.machine for m in found} == {"a", "b", ""}
    for m, latency in zip(found, LATENCIES, strict=True):
        if latency == "broken":
            assert (m.outcome, m.machine) == (Outcome.COMPILE_ERROR, "")
        else:
            # In the first machine's unit, whichever ran it.
            assert m.latency == pytest.approx(latency)
    assert b.ran[0][1] is None, "the second machine first times the best there is"
    assert all(rival is not None for _, rival in b.ran[1:])
    assert a.closed
    assert b.closed


def test_a_machine_that_is_not_like_the_first_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    a, b = FakeRunner("a"), FakeRunner("b", 2.0)
    with caplog.at_level(logging.WARNING), opened(a, b) as measurer:
        found = measured(measurer, [9.0, 8.0, 10.0])
    assert {m.machine for m in found} == {"a"}
    assert b.ran == []
    assert "b is not used to time programs: it computes with" in caplog.text


def test_a_machine_that_is_lost_costs_what_it_had_and_the_others_go_on() -> None:
    a, b = FakeRunner("a"), FakeRunner("b")
    b.dies_at = 3
    with opened(a, b) as measurer:
        found = measured(measurer, [9.0 + n for n in range(20)])
    (lost,) = [m for m in found if m.outcome.failed]
    assert (lost.outcome, lost.machine, lost.latency) == (Outcome.CRASH, "b", None)
    assert lost.error == "b was lost while it had this program: the cable was pulled"
    assert [m.outcome for m in found].count(Outcome.OK) == 19


def test_the_last_machine_is_waited_for_and_times_the_best_again() -> None:
    a = FakeRunner("a")
    a.dies_at, a.revivals = 2, 1
    with opened(a) as measurer:
        found = measured(measurer, [9.0, 8.0, 7.0, 8.5])
    assert [m.outcome for m in found] == [Outcome.OK, Outcome.OK, Outcome.CRASH, Outcome.OK]
    assert a.ran[-2:] == [("8.0", None), ("8.5", "8.0")]


def test_with_no_machine_left_tuning_ends_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    a, b = FakeRunner("a"), FakeRunner("b")
    a.dies_at = b.dies_at = 3
    with (
        caplog.at_level(logging.WARNING),
        opened(a, b) as measurer,
        pytest.raises(TuningError, match="no machine that times programs came back within 0 s; lost: a: the cable was pulled"),
    ):
        measured(measurer, [9.0 + n for n in range(20)])
    assert "waiting 0 s for one to come back" in caplog.text


def test_a_machine_that_fails_at_the_best_is_lost() -> None:
    a, b = FakeRunner("a"), FakeRunner("b")
    b.dies_at = 0
    with opened(a, b) as measurer:
        found = measured(measurer, [9.0 + n for n in range(6)])
    assert [m.machine for m in found if m.outcome.failed] == ["b"]


def test_a_machine_that_comes_and_goes_does_not_end_the_tuning() -> None:
    """What is lost with it says nothing of the programs."""

    class Flapping(FakeRunner):
        def _run(self, task: Task, artifact: Artifact, rival: Rival | None) -> Ran:
            if len(self.ran) % 2:
                self.ran.append(("", None))
                raise LostError("the cable is loose")
            return super()._run(task, artifact, rival)

        def revive(self) -> bool:
            return True

    with opened(Flapping("a"), settings=replace(SETTINGS, identical_failures=3)) as measurer:
        found = measured(measurer, [1.0] * 4 + [9.0 + n for n in range(20)])
    assert sum(m.outcome.failed for m in found) > 6


def test_the_best_of_an_earlier_run_is_the_unit_on_every_machine() -> None:
    a, b = FakeRunner("a"), FakeRunner("b", 1.1)
    best = Measurement(Candidate("4.0"), Outcome.OK, latency=8.0, checked=True)
    with opened(a, b) as measurer:
        found = measured(measurer, [5.0, 6.0, 7.0, 8.0, 9.0, 10.0], best)
    assert [m.latency for m in found] == pytest.approx([10.0, 12.0, 14.0, 16.0, 18.0, 20.0])


def test_measurements_on_several_machines_may_be_left_half_way() -> None:
    with opened(FakeRunner("a"), FakeRunner("b")) as measurer:
        run = measurer.measure(matmul(), [Candidate(str(9.0 + n)) for n in range(30)])
        assert next(run).outcome is Outcome.OK
        assert next(run).outcome is Outcome.OK
        run.close()
        assert len(measured(measurer, [3.0, 2.0])) == 2


def test_peaks_are_allowed_to_differ_as_settings_say() -> None:
    a, b = FakeRunner("a"), FakeRunner("b", 2.0)
    with opened(a, b, settings=replace(SETTINGS, alike=3.0)) as measurer:
        found = measured(measurer, [9.0 + n for n in range(12)])
    assert {m.machine for m in found} == {"a", "b"}
    assert [m.latency for m in found] == pytest.approx([9.0 + n for n in range(12)])
