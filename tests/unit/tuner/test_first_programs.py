"""The first programs of many tasks are chosen and compiled side by side."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

import ansorlite as al
from ansorlite.best.defaults import Defaults
from ansorlite.cache.disk import NoCache
from ansorlite.measure import Artifact, Failure, Measurer, MeasureSettings
from ansorlite.measure.roles import Built, Workers
from ansorlite.measure.verdict import Verdict
from ansorlite.records import Outcome
from ansorlite.search import default_candidate
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.spaces import derive
from ansorlite.target import host
from ansorlite.task import Task
from ansorlite.tuner.result import Stop
from ansorlite.tuner.start import build_ahead
from benchmarks.kernels.operators.matmul import Matmul
from tests.unit.measure.test_machines import FakeBuilder, FakeRunner

TASKS: Final = [al.Task(Matmul(n, 7, 3).tensors(), host(1)) for n in range(4, 10)]


class Ahead:
    """Compiles what it is given, or takes for the default one what is as fast as its number says."""

    def __init__(self) -> None:
        self.asked: list[Sequence[tuple[Task, Candidate | None]]] = []

    def each(self, programs: Sequence[tuple[Task, Candidate | None]]) -> Generator[tuple[int, Built], None, None]:
        self.asked.append(programs)
        for number, (_, given) in reversed(list(enumerate(programs))):
            candidate = given or Candidate(f"{number + 1}.0")
            if number == 1:
                yield number, Failure(candidate, Verdict(Outcome.COMPILE_ERROR, "no"), 0.5, 1.0)
            elif number != 2:
                yield number, Artifact(candidate, b"", 0.5, 1.0, f"key of {candidate.trace}")


class Recorded(FakeBuilder):
    def __init__(self) -> None:
        self.built: list[Candidate] = []

    def build(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Built]:
        self.built += candidates
        return super().build(task, candidates)


def measuring(builder: Recorded, ahead: Ahead | None) -> Measurer:
    return Measurer(host(1), MeasureSettings(), lambda _target, _settings: Workers(builder, [FakeRunner("a")], ahead))


def test_what_was_built_ahead_is_not_built_again() -> None:
    ahead, builder, defaults = Ahead(), Recorded(), Defaults(NoCache(), None)
    defaults.remember(TASKS[4], Candidate("9.0"))
    with measuring(builder, ahead) as measurer:
        build_ahead(defaults, TASKS, measurer, lambda: False)
        chosen = [defaults.known(task) for task in TASKS]
        assert [c and c.trace for c in chosen] == ["1.0", "2.0", None, "4.0", "9.0", "6.0"]
        for number, task in enumerate(TASKS):
            first, other = Candidate("3.0") if chosen[number] is None else chosen[number], Candidate("50.0")
            assert first is not None
            found = list(measurer.measure(task, [other, first]))
            assert [m.candidate for m in found] == [other, first]
            assert found[1].outcome is (Outcome.COMPILE_ERROR if number == 1 else Outcome.OK)
            assert builder.built == ([other, first] if number == 2 else [other]), "only what was not built ahead"
            builder.built.clear()
        (again,) = measurer.measure(TASKS[0], [Candidate("1.0")])
        assert again.outcome is Outcome.OK
        assert builder.built == [Candidate("1.0")], "it is not kept beyond its measurement"


def test_of_few_tasks_nothing_is_built_ahead() -> None:
    ahead, defaults = Ahead(), Defaults(NoCache(), None)
    with measuring(Recorded(), ahead) as measurer:
        build_ahead(defaults, TASKS[:5], measurer, lambda: False)
    assert ahead.asked == []


def test_where_the_time_is_up_the_rest_is_left() -> None:
    defaults = Defaults(NoCache(), None)
    with measuring(Recorded(), Ahead()) as measurer:
        build_ahead(defaults, TASKS, measurer, lambda: True)
    assert [defaults.known(task) is not None for task in TASKS] == 5 * [False] + [True], "the first that was done"


def test_programs_are_built_after_the_rest_was_left() -> None:
    with Measurer(host(1)) as measurer:
        with closing(measurer.build_ahead([(task, None) for task in TASKS])) as built:
            task, default = next(built)
        found = list(measurer.measure(task, [NAIVE, default]))
    assert [m.outcome for m in found] == 2 * [Outcome.OK]


def test_a_limit_that_is_over_before_the_first_trial_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSORLITE_CACHE_DIR", "")
    monkeypatch.setattr("ansorlite.search.default_candidate", lambda *_: pytest.fail("nothing is measured any more"))
    result = al.tune(TASKS, progress=False, time_limit=1e-9)
    assert (result.stopped, result.trials) == (Stop.TIME, 0)


def test_where_nothing_builds_ahead_nothing_is_chosen() -> None:
    defaults = Defaults(NoCache(), None)
    with measuring(Recorded(), None) as measurer:
        build_ahead(defaults, TASKS, measurer, lambda: False)
    assert all(defaults.known(task) is None for task in TASKS)


def test_tuning_begins_with_the_same_programs_however_they_were_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSORLITE_CACHE_DIR", str(tmp_path))
    expected = {task.key: default_candidate(task, derive(task)) for task in TASKS}
    # In workers, then from the cache; with the loops as written, which are short here.
    for _ in range(2):
        result = al.tune(TASKS, trials=2 * len(TASKS), progress=False)
        first = {}
        for trial in result.history:
            first.setdefault(TASKS[trial.task].key, trial.candidate)
        assert first == expected
        assert all(task.best_latency < 1 for task in result.tasks)
        monkeypatch.setattr("ansorlite.search.default_candidate", lambda *_: pytest.fail("it was chosen before"))
