"""Every way in which a candidate can go wrong costs one measurement, which says what happened; the next ones go on."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansorlite import __version__
from ansorlite.errors import TuningError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.records import Measurement, Outcome
from ansorlite.sketch.candidate import NAIVE, Candidate
from tests.unit.measure.fake_backend import faked
from tests.unit.measure.tasks import index_out_of_range, matmul

SETTINGS = MeasureSettings(
    build_seconds=2.0,
    run_seconds=2.0,
    check_seconds=2.0,
    slow_factor=1e9,
    hopeless_factor=1e9,
    memory_bytes=400 << 20,
    repeats=3,
    repeat_seconds=0.0001,
    builders=1,
    identical_failures=5,
    backend="tests.unit.measure.fake_backend",
)

GOOD = faked("good")


@pytest.fixture(scope="module")
def impatient() -> Iterator[Measurer]:
    """A measurer that does not wait for slow programs."""
    settings = replace(SETTINGS, slow_factor=3.0, hopeless_factor=10.0, patience=0.5, run_seconds=1000.0)
    with Measurer(settings=settings) as measurer:
        yield measurer


@pytest.fixture(scope="module")
def measurer() -> Iterator[Measurer]:
    with Measurer(settings=SETTINGS) as measurer:
        yield measurer


def candidates(*names: str, value: int = 5) -> list[Candidate]:
    return [faked(name, value) for name in names]


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("build raises", Outcome.COMPILE_ERROR, ["ValueError: row 5 cannot be compiled", "Traceback"]),
        ("build hangs", Outcome.COMPILE_TIMEOUT, ["compiling was not done after 2.0 s"]),
        ("build crashes", Outcome.CRASH, ["while it compiled", "SIGSEGV", "about to read address zero", "fake_backend.py"]),
        ("build eats memory", Outcome.OUT_OF_MEMORY, ["compiling", "more than 400 MiB"]),
        ("run raises", Outcome.CRASH, ["RuntimeError: the program does not like this"]),
        ("run hangs", Outcome.RUN_TIMEOUT, ["not done after 2.0 s, while the program ran"]),
        ("second call hangs", Outcome.RUN_TIMEOUT, ["after the program's first call"]),
        ("run crashes", Outcome.CRASH, ["while the program ran", "SIGSEGV", "about to read address zero"]),
        ("run eats memory", Outcome.OUT_OF_MEMORY, ["running", "more than 400 MiB"]),
        ("wrong", Outcome.WRONG_RESULT, ["1 of 256 elements of C are wrong", "(0, 5)"]),
        ("leaves one out", Outcome.WRONG_RESULT, ["1 of 256 elements of C are wrong", "(0, 0), is nan"]),
    ],
)
def test_a_failure_is_one_record_and_the_next_candidate_is_fine(
    measurer: Measurer, name: str, outcome: Outcome, words: list[str]
) -> None:
    failed, fine = measurer.measure(matmul(), [*candidates(name), GOOD])
    assert failed.outcome is outcome
    assert failed.latency is None
    assert not failed.checked
    for word in words:
        assert word in failed.error
    assert (fine.outcome, fine.error) == (Outcome.OK, "")


def test_a_measurement_says_what_was_measured(measurer: Measurer) -> None:
    before = time.time()
    (measured,) = measurer.measure(matmul(9), candidates("build prints"))
    assert measured.candidate == faked("build prints")
    assert (measured.key, measured.version, measured.outcome) == ("key of build prints: 5", __version__, Outcome.OK)
    assert measured.checked
    assert measured.latency is not None
    assert measured.latency > 0
    assert before <= measured.when <= time.time()
    assert min(measured.seconds.build, measured.seconds.run, measured.seconds.check) > 0


def test_far_slower_than_the_best_is_stopped_early(impatient: Measurer) -> None:
    fast, slow = impatient.measure(matmul(10), [GOOD, *candidates("sleeps", value=200)])
    assert fast.outcome is Outcome.OK
    assert slow.outcome is Outcome.EARLY_STOPPED
    assert slow.latency is not None
    assert slow.latency >= 0.2
    assert not slow.checked
    assert not slow.outcome.failed


def test_a_slow_first_call_alone_does_not_stop_it(impatient: Measurer) -> None:
    first, second = impatient.measure(matmul(14), [*candidates("sleeps", value=50), *candidates("sleeps once", value=300)])
    assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.OK)
    assert first.latency is not None
    assert second.latency is not None
    assert second.latency < first.latency


def test_the_loops_as_written_are_timed_however_slow_they_are(impatient: Measurer) -> None:
    _, naive = impatient.measure(matmul(15), [GOOD, NAIVE])
    assert naive.outcome is Outcome.OK
    assert naive.latency is not None
    assert naive.latency >= 0.1


def test_the_loops_as_written_are_not_waited_for_if_they_only_serve_to_compare() -> None:
    with Measurer(settings=replace(SETTINGS, slow_factor=10.0, naive_patience=0.05)) as measurer:
        (alone,) = measurer.measure(matmul(16), [NAIVE])
        _, naive = measurer.measure(matmul(17), [GOOD, NAIVE])
    assert alone.outcome is Outcome.OK
    assert (naive.outcome, naive.latency) == (Outcome.RUN_TIMEOUT, None)


def test_calls_that_are_clearly_slow_are_not_waited_for(impatient: Measurer) -> None:
    _, slow = impatient.measure(matmul(), [GOOD, *candidates("run hangs")])
    assert slow.outcome is Outcome.RUN_TIMEOUT
    assert "not done after 0.5 s" in slow.error


def test_the_best_of_an_earlier_run_is_known(impatient: Measurer) -> None:
    best = Measurement(GOOD, Outcome.OK, latency=1e-9, checked=True)
    (slower,) = impatient.measure(matmul(11), candidates("sleeps"), best=best)
    assert slower.outcome is Outcome.EARLY_STOPPED


def test_a_best_that_does_not_compile_any_more_is_not_used(measurer: Measurer, caplog: pytest.LogCaptureFixture) -> None:
    best = Measurement(faked("build raises", 1), Outcome.OK, latency=1e-9, checked=True)
    with caplog.at_level(logging.WARNING):
        (measured,) = measurer.measure(matmul(12), candidates("sleeps"), best=best)
    assert measured.outcome is Outcome.OK
    assert "does not compile and is not used" in caplog.text


def test_one_failure_again_and_again_ends_the_tuning_and_says_how_it_began(measurer: Measurer) -> None:
    many = [faked("build raises", row) for row in range(20)]
    seen: list[Measurement] = []
    with pytest.raises(TuningError, match=r"the last 5 candidates all failed in one way \(compile_error\).*row 0 cannot"):
        seen.extend(measurer.measure(matmul(), many))
    assert [measurement.candidate for measurement in seen] == many[:5]


def test_a_task_that_cannot_be_evaluated_is_an_error(measurer: Measurer) -> None:
    with pytest.raises(TuningError, match=r"the reference output .* cannot be computed: .*if_then_else"):
        list(measurer.measure(index_out_of_range(), [GOOD]))
    assert [m.outcome for m in measurer.measure(matmul(13), [GOOD])] == [Outcome.OK]


def test_a_program_that_was_removed_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Measurer(settings=SETTINGS) as measurer:
        measurements = measurer.measure(matmul(), [GOOD, *candidates("sleeps")])
        next(measurements)
        for file in tmp_path.glob("*/*"):
            file.unlink()
        with pytest.raises(TuningError, match=f"removed while programs were measured; something cleans {tmp_path}"):
            next(measurements)


def test_the_best_of_an_earlier_run_is_timed_again_and_stays_the_unit() -> None:
    with Measurer(settings=replace(SETTINGS, slow_factor=3.0)) as measurer:
        # As if the machine were slower now.
        best = Measurement(faked("sleeps", 20), Outcome.OK, latency=1e-9, checked=True)
        same, slower = measurer.measure(matmul(18), candidates("sleeps", value=21) + candidates("sleeps", value=400), best=best)
    assert same.outcome is Outcome.OK
    assert same.latency is not None
    assert same.latency < 1e-8  # compared with the best, in the unit of its record
    assert slower.outcome is Outcome.EARLY_STOPPED


def test_a_best_that_is_wrong_now_is_not_used(measurer: Measurer, caplog: pytest.LogCaptureFixture) -> None:
    best = Measurement(faked("wrong", 1), Outcome.OK, latency=1e-9, checked=True)
    with caplog.at_level(logging.WARNING):
        (measured,) = measurer.measure(matmul(19), candidates("sleeps"), best=best)
    assert measured.outcome is Outcome.OK
    assert measured.latency is not None
    assert measured.latency > 1e-3
    assert "does not run and is not used: 1 of 361 elements of C are wrong" in caplog.text
