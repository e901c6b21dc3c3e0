"""Which program ``al.compile`` takes."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.codegen.object import Object
from ansorlite.errors import BrokenProgramWarning, ProgramSizeError
from ansorlite.features import extract
from ansorlite.features.names import COLUMN
from ansorlite.measure.native import build
from ansorlite.measure.referee import Referee, Turn
from ansorlite.measure.replay import main as replay
from ansorlite.measure.roles import Failure
from ansorlite.measure.verdict import Verdict
from ansorlite.programs.build import build_candidate
from ansorlite.records.database import Database, TaskEntry
from ansorlite.records.measurement import Measurement, Outcome, Record
from ansorlite.runtime.kernel import Origin
from ansorlite.search.default import default_candidate, default_candidates
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.spaces.builders import Derived
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.serialize import dump
from tests.workloads import matmul

TASK = Task(matmul(16, 16, 16))
SKETCHES = derive(TASK)
DEFAULT = default_candidate(TASK, SKETCHES)
SHORT = default_candidates(TASK, SKETCHES, most_steps=64)[0]
OTHER = SKETCHES[0].candidate((0,) * len(SKETCHES[0].holes))


def taken(path: Path, *measurements: Measurement) -> Candidate:
    with Database(path / "t.db") as database:
        for measurement in measurements:
            database.add(TASK, measurement)
        programs = Programs(database)
        candidate = programs.candidate(TASK)
        programs.warn()
    return candidate


def ran(candidate: Candidate, latency: float, checked: bool = True) -> Measurement:
    return Measurement(candidate, Outcome.OK, latency=latency, checked=checked)


def test_the_fastest_checked_program(tmp_path: Path) -> None:
    assert taken(tmp_path, ran(NAIVE, 3.0), ran(DEFAULT, 2.0), ran(OTHER, 1.0)) == OTHER
    assert taken(tmp_path, ran(DEFAULT, 0.5, checked=False)) == OTHER


def test_without_records_a_default(tmp_path: Path) -> None:
    assert taken(tmp_path) == Programs(None).candidate(TASK) == DEFAULT != NAIVE


def test_naive_alone_is_no_reason_to_use_it(tmp_path: Path) -> None:
    assert taken(tmp_path, ran(NAIVE, 3.0)) == DEFAULT


def test_naive_alone_is_no_reason_to_use_it_where_the_default_does_not_compile(tmp_path: Path) -> None:
    """It was measured of a quantised model whose default was too long: tuned, the model took five times as long."""
    failed = Measurement(DEFAULT, Outcome.COMPILE_ERROR, error="too long")
    second, last = (each for each in default_candidates(TASK, SKETCHES) if each != DEFAULT)
    assert taken(tmp_path, failed, ran(NAIVE, 3.0)) == SHORT
    short_failed = replace(failed, candidate=SHORT)
    assert taken(tmp_path, failed, short_failed, ran(NAIVE, 3.0)) == second
    assert taken(tmp_path, failed, short_failed, ran(NAIVE, 3.0), replace(failed, candidate=second)) == NAIVE == last


@pytest.mark.parametrize("most", [4, 64])
def test_a_program_that_takes_the_place_of_one_too_long_writes_out_few_steps(most: int) -> None:
    def steps(candidate: Candidate) -> float:
        features = extract(sketch_of(TASK, candidate), np.zeros((1, 0), np.int64))
        return float(2 ** features[:, :, COLUMN["unrolled"]].max()) - 1

    found = default_candidates(TASK, SKETCHES, most_steps=most)[0]
    assert steps(found) <= most < steps(DEFAULT)


def test_on_gpus_no_program_is_chosen_by_what_it_writes_out() -> None:
    task = Task(matmul(16, 16, 16), "emulated")
    sketches = derive(task)
    assert default_candidates(task, sketches, most_steps=4) == default_candidates(task, sketches)


def test_naive_where_the_default_is_known_to_be_slower(tmp_path: Path) -> None:
    assert taken(tmp_path, ran(NAIVE, 3.0), ran(DEFAULT, 4.0)) == NAIVE


def test_records_of_another_version_are_told_and_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert taken(tmp_path, ran(Candidate("gone"), 0.1), ran(OTHER, 1.0)) == OTHER
    assert "changed by hand): 1; tune again" in caplog.text


def test_a_database_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernel = al.compile(TASK, tmp_path / "nowhere.db")
    assert "there is no tuning database at" in caplog.text
    assert kernel.inputs[0].shape == (16, 16)
    assert not (tmp_path / "nowhere.db").exists()


class Counted:
    """A cache in memory that counts its hits."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.hits = 0

    def get(self, key: str) -> bytes | None:
        self.hits += key in self.data
        return self.data.get(key)

    def put(self, key: str, data: bytes) -> None:
        self.data[key] = data


def test_a_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Counted()
    a, b = np.random.default_rng(0).random((2, 16, 16), dtype=np.float32)
    first = Programs(None, cache=cache).kernel(TASK)
    assert (cache.hits, len(cache.data)) == (0, 2)
    # Another process finds the default program and its code; neither is worked out again.
    monkeypatch.setattr("ansorlite.spaces.sketches_of", None)
    again = Programs(None, cache=cache).kernel(TASK)
    assert cache.hits == 2
    assert again.source("asm") == first.source("asm")
    np.testing.assert_array_equal(again(a, b), first(a, b))


def test_a_record_whose_program_was_compiled_needs_no_derivation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Counted()
    with Database(tmp_path / "t.db") as database:
        database.add(TASK, ran(OTHER, 0.25))
        Programs(database, cache=cache).kernel(TASK)
        monkeypatch.setattr("ansorlite.spaces.sketches_of", None)
        assert Programs(database, cache=cache).kernel(TASK).origin == Origin(OTHER, 0.25)


def test_programs_of_rules_of_ones_own_are_not_kept() -> None:
    cache = Counted()
    Programs(None, Derived(CPU_RULES), cache).kernel(TASK)
    assert cache.data == {}


def test_many_programs_are_chosen_and_compiled_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansorlite.best.choice._MANY", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    cache = Counted()
    tasks = [Task(matmul(n, 8, 8)) for n in (4, 5)]
    defaults = [default_candidate(task, derive(task)) for task in tasks]
    programs = Programs(None, cache=cache)
    monkeypatch.setattr("ansorlite.search.default_candidate", None)
    monkeypatch.setattr("ansorlite.programs.build_candidate", None)
    programs.prepare([*tasks, tasks[0]])
    assert len(cache.data) == 4
    assert [programs.candidate(task) for task in tasks] == defaults
    for task in tasks:
        a, b = (np.random.default_rng(n).random(t.shape, dtype=np.float32) for n, t in enumerate(task.dag.inputs))
        np.testing.assert_allclose(programs.kernel(task)(a, b), a @ b, rtol=1e-5)


# What other machines recommend ------------------------------------------------------------------------------------------


class FakeReferee:
    """Compares programs by what a test says of their latencies, and remembers which turns there were."""

    def __init__(self, latencies: dict[Candidate, float | Verdict]) -> None:
        self.latencies = {build(TASK, candidate).code: seconds for candidate, seconds in latencies.items()}
        self.turns: list[float] = []
        self.closed = False

    def compare(self, task: Task, program: bytes, rival: bytes, seconds: float) -> Turn:
        assert task.key == TASK.key
        self.turns.append(seconds)
        ours, theirs = self.latencies[program], self.latencies[rival]
        assert isinstance(theirs, float)
        if isinstance(ours, Verdict):
            return Turn(ours, None, None, 0.125)
        return Turn(Verdict(Outcome.OK), ours, theirs, 0.125)

    def close(self) -> None:
        self.closed = True


OTHERS = [SKETCHES[0].candidate((n, *(0,) * (len(SKETCHES[0].holes) - 1))) for n in range(8)]


def elsewhere(database: Database, *measurements: Measurement) -> None:
    """Add measurements as an import does."""
    key, target = TASK.key, TASK.target.key
    entry = TaskEntry(key, dump(TASK.dag), 0.0)
    database.merge([entry], [Record(0, key, target, replace(m, when=float(n)), "") for n, m in enumerate(measurements)])


def chosen(database: Database, referee: FakeReferee | None, cache: Counted | None = None) -> Origin:
    programs = Programs(database, cache=cache or Counted(), referee=cast(Any, referee))
    origin = programs.kernel(TASK).origin
    assert origin is not None
    return origin


def test_a_lie_about_latency_does_not_win(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(OTHERS[0], 1e-12))
        referee = FakeReferee({OTHERS[0]: 32.0, DEFAULT: 1.0})
        assert chosen(database, referee) == Origin(DEFAULT, 1.0)
        assert len(referee.turns) == 1
        # It had its turn, and what came of it is known for ever.
        assert chosen(database, None) == Origin(DEFAULT, 1.0)
        kept = {r.measurement.candidate: r.measurement.latency for r in database.records() if r.measurement.here}
        assert kept == {OTHERS[0]: 32.0, DEFAULT: 1.0}
    with Database(tmp_path / "t.db") as database:
        assert chosen(database, None) == Origin(DEFAULT, 1.0)


def test_what_is_faster_here_too_wins(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(OTHERS[0], 9.0), ran(OTHERS[1], 8.0), ran(DEFAULT, 10.0))
        referee = FakeReferee({OTHERS[0]: 0.25, OTHERS[1]: 0.5, DEFAULT: 1.0})
        assert chosen(database, referee) == Origin(OTHERS[0], 0.25)
        assert chosen(database, None) == Origin(OTHERS[0], 0.25)


def test_turns_are_few_and_share_the_time(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, *(ran(other, 1.0 + n) for n, other in enumerate(OTHERS)))
        referee = FakeReferee({**dict.fromkeys(OTHERS, 3.0), DEFAULT: 1.0})
        assert chosen(database, referee).candidate == DEFAULT
        assert referee.turns == pytest.approx([0.5 / 3, 0.375 / 2, 0.25])
        assert chosen(database, None).candidate == DEFAULT  # no others follow


def test_latencies_of_turns_are_in_the_unit_of_the_records(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        database.add(TASK, ran(OTHERS[1], 10.0))
        elsewhere(database, ran(OTHERS[0], 7.0))
        # The machine is twice as slow as when the record was made.
        assert chosen(database, FakeReferee({OTHERS[0]: 15.0, OTHERS[1]: 20.0})) == Origin(OTHERS[0], 7.5)


@pytest.mark.parametrize("outcome", [Outcome.CRASH, Outcome.RUN_TIMEOUT, Outcome.WRONG_RESULT])
def test_a_recommended_program_that_fails_is_not_tried_again(tmp_path: Path, outcome: Outcome) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(OTHERS[0], 1e-12))
        assert chosen(database, FakeReferee({OTHERS[0]: Verdict(outcome, "bang"), DEFAULT: 1.0})) == Origin(DEFAULT, None)
        assert chosen(database, None) == Origin(DEFAULT, None)
        assert [r.measurement.outcome for r in database.records() if r.measurement.here] == [outcome]


def test_what_elsewhere_was_no_faster_than_the_default_gets_no_turn(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(DEFAULT, 1.0), ran(OTHERS[0], 2.0), ran(NAIVE, 1.5))
        assert chosen(database, None) == Origin(DEFAULT, None)


def test_the_loops_as_written_get_no_turn_unless_they_were_compared_with_the_default(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(NAIVE, 1e-12))
        assert chosen(database, None) == Origin(DEFAULT, None)
        elsewhere(database, ran(NAIVE, 1e-12), ran(DEFAULT, 1.0))
        assert chosen(database, FakeReferee({NAIVE: 5.0, DEFAULT: 1.0})) == Origin(DEFAULT, 1.0)


def test_turns_beside_a_database_that_may_only_be_read_are_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(OTHERS[0], 1.0))
    monkeypatch.setattr(os, "access", lambda *_: False)  # which root is never told by the file
    cache = Counted()
    for referee in (FakeReferee({OTHERS[0]: 2.0, DEFAULT: 3.0}), None):
        with Database(tmp_path / "t.db", create=False) as database:
            assert chosen(database, referee, cache) == Origin(OTHERS[0], 2.0)


def test_without_a_cache_nothing_is_kept_and_nothing_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(OTHERS[0], 1.0))
    monkeypatch.setenv("ANSORLITE_CACHE_DIR", "")
    for _ in range(2):
        with Database(tmp_path / "t.db") as database:
            referee = FakeReferee({OTHERS[0]: 2.0, DEFAULT: 3.0})
            assert chosen(database, referee) == Origin(OTHERS[0], 2.0)
            assert len(referee.turns) == len(database.records()) == 1


def test_a_worker_compares_recommended_programs(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        elsewhere(database, ran(OTHERS[0], 1e-12), ran(OTHERS[1], 1e-12))
        with Referee() as referee:
            programs = Programs(database, cache=Counted(), referee=_Patient(referee))
            programs.kernel(TASK)
        here = [record.measurement for record in database.records() if record.measurement.here]
    assert {m.candidate for m in here} == {OTHERS[0], OTHERS[1], DEFAULT}
    assert {m.outcome for m in here} <= {Outcome.OK, Outcome.EARLY_STOPPED}
    assert all(m.latency is not None and m.latency > 1e-8 for m in here)


class _Patient(Referee):
    """Gives programs all the time that a busy machine needs."""

    def __init__(self, referee: Referee) -> None:
        self._real = referee

    def compare(self, task: Task, program: bytes, rival: bytes, seconds: float) -> Turn:
        return self._real.compare(task, program, rival, 60.0 + seconds)


# Records and programs that are not what they should be -------------------------------------------------------------------


SPOILT = {
    "nothing": "",
    "no Python": "def schedule(s):\n    s.split(",
    "something else": "import os\nos.remove('t.db')",
    "another stage": OTHER.trace.replace('"C"', '"Z"'),
    "open": SKETCHES[0].text,
    "too short tiles": OTHER.trace.replace("16, 1)", "2, 1)"),
    "a loop of no iterations": OTHER.trace.replace("16, 1)", "16, 0)"),
    "deep": f"def schedule(s):\n    s.inline({'(' * 10_000})",
    "long": f"def schedule(s):\n    {'s.inline(0); ' * 100_000}",
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_trace_that_makes_no_program_is_skipped_and_said_once(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoilt = Candidate(SPOILT[how])
    assert spoilt != OTHER
    with Database(tmp_path / "t.db") as database:
        database.add(TASK, replace(ran(spoilt, 0.1), when=1.0))
        elsewhere(database, ran(spoilt, 0.1))
        with Programs(database, cache=Counted()) as programs:
            assert programs.kernel(TASK).origin == Origin(DEFAULT, None)
            programs.warn()
        assert caplog.text.count("changed by hand): 1; tune again") == 1
        caplog.clear()
        result = al.tune(TASK, trials=1, database=database)
    assert (result.restored, result.trials) == (0, 1)
    assert caplog.text.count("changed by hand) do not apply: 2") == 1


@pytest.fixture(autouse=True)
def own_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The databases of what does not compile stay, for whoever follows the warning."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def broken(monkeypatch: pytest.MonkeyPatch, *candidates: Candidate) -> None:
    def build_some(task: Task, candidate: Candidate) -> Object:
        if candidate in candidates:
            raise RuntimeError("LLVM IR parsing error: expected type")
        return build_candidate(task, candidate)

    monkeypatch.setattr("ansorlite.programs.build_candidate", build_some)


def test_the_next_best_program_is_taken_where_one_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, OTHERS[0], OTHERS[1])
    with Database(tmp_path / "t.db") as database:
        for n, other in enumerate(OTHERS[:3]):
            database.add(TASK, ran(other, 1.0 + n))
        with pytest.warns(BrokenProgramWarning, match="does not compile.*LLVM IR parsing error") as told:
            assert chosen(database, None) == Origin(OTHERS[2], 3.0)
    assert [str(each.message).rpartition("shows: ")[2] for each in told] == [
        f"python -m ansorlite.measure.replay {tmp_path / 't.db'} {number}" for number in (1, 2)
    ]


def test_a_default_that_does_not_compile_is_shown_by_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, DEFAULT)
    a, b = np.random.default_rng(0).random((2, 16, 16), dtype=np.float32)
    with pytest.warns(BrokenProgramWarning) as told:
        kernel = Programs(None, cache=Counted()).kernel(TASK)
    assert kernel.origin is not None
    assert kernel.origin.candidate not in (DEFAULT, NAIVE)  # the second choice, of another sketch
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5)
    (command,) = (str(each.message).rpartition("shows: ")[2] for each in told)
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "ansorlite.measure.replay"]
    shown = CliRunner().invoke(replay, [*words[3:], "--here"])
    assert "recorded:  compile_error: LLVM IR parsing error" in shown.stdout
    assert DEFAULT.trace in shown.stdout
    assert "now:       ok" in shown.stdout  # as it is only here that it does not compile


def test_a_default_beyond_the_limit_of_its_size_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a warning, which is an error in these tests: that is no fault to report."""

    def build_small(task: Task, candidate: Candidate) -> Object:
        if candidate == DEFAULT:
            raise ProgramSizeError("the program unrolls to more than 30000 instructions")
        return build_candidate(task, candidate)

    monkeypatch.setattr("ansorlite.programs.build_candidate", build_small)
    kernel = Programs(None, cache=Counted()).kernel(TASK)
    assert kernel.origin is not None
    assert kernel.origin.candidate != DEFAULT


def test_where_nothing_compiles_the_error_of_the_loops_as_written_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, SHORT, *default_candidates(TASK, SKETCHES))
    with pytest.warns(BrokenProgramWarning), pytest.raises(RuntimeError, match="LLVM IR parsing error"):
        Programs(None, cache=Counted()).kernel(TASK)


def test_in_the_tests_of_ansorlite_a_program_that_does_not_compile_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, DEFAULT)
    with pytest.raises(BrokenProgramWarning, match="does not compile"):
        Programs(None, cache=Counted()).kernel(TASK)


def test_what_builder_processes_cannot_compile_is_not_taken_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansorlite.best.choice._MANY", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    verdict = Verdict(Outcome.CRASH, "the worker died while it compiled: it was ended by SIGSEGV")
    monkeypatch.setattr(
        "ansorlite.measure.build_all", lambda programs, _: [Failure(made, verdict, 0.0, 0.0) for _, made in programs]
    )
    cache, tasks = Counted(), [Task(matmul(n, 8, 8)) for n in (4, 5)]
    for task in tasks:
        Programs(None, cache=cache).candidate(task)  # chooses the default, and remembers it
    programs = Programs(None, cache=cache)
    programs.prepare(tasks)
    for task in tasks:
        with pytest.warns(BrokenProgramWarning, match="ended by SIGSEGV"):
            kernel = programs.kernel(task)
        assert kernel.origin is not None
        assert kernel.origin.candidate != default_candidate(task, derive(task))
