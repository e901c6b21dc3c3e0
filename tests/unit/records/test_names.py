"""Equal computations with other names share the records of a database."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.records import Database, Measurement, Outcome, export_lines, import_lines
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import is_program
from ansorlite.task import Task


def ours() -> Task:
    a, b, k = te.placeholder((16, 8), name="A"), te.placeholder((8, 16), name="B"), te.reduce_axis(8, "k")
    return Task([a, b, te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="C")])


def theirs() -> Task:
    x, w, r = te.placeholder((16, 8), name="C"), te.placeholder((8, 16), name="w"), te.reduce_axis(8, "i")
    return Task([x, w, te.compute((16, 16), lambda row, k: te.sum(x[row, r] * w[r, k], r), name="dense")])


OURS, THEIRS = ours(), theirs()
IN_OURS = Candidate('def schedule(s):\n    C = s.stage("C")\n    s.reorder(C["k"], C["j"])\n    s.parallel((C["i"],))')
IN_THEIRS = Candidate(
    'def schedule(s):\n    dense = s.stage("dense")\n    s.reorder(dense["i"], dense["k"])\n    s.parallel((dense["row"],))'
)


def ran(candidate: Candidate, latency: float, when: float = 1.0) -> Measurement:
    return Measurement(candidate, Outcome.OK, latency=latency, checked=True, when=when, version=al.__version__)


def test_each_sees_the_records_of_both_in_its_own_names() -> None:
    assert OURS.key == THEIRS.key
    assert is_program(OURS, IN_OURS)
    assert is_program(THEIRS, IN_THEIRS)
    assert not is_program(OURS, IN_THEIRS)
    with Database(":memory:") as database:
        database.add(OURS, ran(IN_OURS, 2.0))
        database.add(THEIRS, ran(IN_THEIRS, 1.0, when=2.0))
        assert [record.measurement.candidate for record in database.records()] == [IN_OURS] * 2
        for task, candidate in ((OURS, IN_OURS), (THEIRS, IN_THEIRS)):
            found = database.records_of(task)
            assert [(r.measurement.candidate, r.measurement.ours) for r in found] == [(candidate, True)] * 2


def test_the_same_measurement_is_not_added_under_another_name() -> None:
    with Database(":memory:") as database:
        assert database.add(OURS, ran(IN_OURS, 2.0))
        assert database.add(THEIRS, ran(IN_THEIRS, 2.0)) == 0


def test_a_trace_of_nothing_stays_what_it_is() -> None:
    with Database(":memory:") as database:
        database.add(OURS, ran(IN_OURS, 2.0))
        database.add(THEIRS, ran(Candidate("gone"), 1.0))
        assert [record.measurement.candidate for record in database.records_of(THEIRS)] == [IN_THEIRS, Candidate("gone")]


def test_a_merged_database_keeps_its_seals(tmp_path: Path) -> None:
    with Database(tmp_path / "theirs.db") as database:
        database.add(THEIRS, ran(IN_THEIRS, 1.0))
        lines = list(export_lines(database))
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "changed").write_text("".join(f"{line}\n" for line in lines).replace('"latency": 1.0', '"latency": 0.5'))
    with Database(tmp_path / "ours.db") as database:
        database.add(OURS, ran(IN_OURS, 2.0, when=2.0))
        assert import_lines(database, tmp_path / "lines") == 1
        assert import_lines(database, tmp_path / "lines") == 0
        found = [record.measurement for record in database.records_of(OURS)]
        assert [(m.candidate, m.latency, m.ours) for m in found] == [(IN_OURS, 2.0, True), (IN_OURS, 1.0, True)]
    with Database(tmp_path / "believing.db") as database:
        database.add(OURS, ran(IN_OURS, 2.0, when=2.0))
        assert import_lines(database, tmp_path / "changed") == 1
        assert [record.measurement.ours for record in database.records_of(OURS)] == [True, False]


def test_what_was_tuned_under_one_name_is_compiled_under_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Database(tmp_path / "t.db") as database:
        database.add(OURS, ran(IN_OURS, 1e-9))
    rng = np.random.default_rng(0)
    a, b = rng.random((16, 8), np.float32), rng.random((8, 16), np.float32)
    for task, candidate in ((OURS, IN_OURS), (THEIRS, IN_THEIRS), (OURS, IN_OURS)):
        kernel = al.compile(task, database=tmp_path / "t.db")
        assert kernel.trace == candidate.trace
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_defaults_are_in_the_names_of_their_tasks() -> None:
    assert [name for name in ("dense", "C") if f'"{name}"' in al.compile(THEIRS).trace] == ["dense"]
    assert [name for name in ("dense", "C") if f'"{name}"' in al.compile(OURS).trace] == ["C"]


def test_a_tuning_goes_on_from_records_of_other_names(tmp_path: Path) -> None:
    first = al.tune(OURS, trials=4, database=tmp_path / "t.db", seed=1)
    again = al.tune(THEIRS, trials=8, database=tmp_path / "t.db", seed=1)
    assert again.restored == first.trials
    with Database(tmp_path / "t.db") as database:
        traces = [record.measurement.candidate.trace for record in database.records_of(THEIRS)]
    assert len(set(traces)) == len(traces) > first.trials
    assert not [trace for trace in traces if '"B"' in trace]


def test_a_damaged_task_is_not_renamed() -> None:
    with Database(":memory:") as database:
        database.add(OURS, ran(IN_OURS, 2.0))
        (entry,) = database.tasks()
    with Database(":memory:") as database:
        database.merge([replace(entry, dag={"format": 1})], [])
        database.add(THEIRS, ran(IN_THEIRS, 1.0))
        assert [record.measurement.candidate for record in database.records_of(THEIRS)] == [IN_THEIRS]
