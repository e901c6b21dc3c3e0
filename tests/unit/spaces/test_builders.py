"""Spaces from outside: schedule functions, several of them, builders, and what is wrong with some."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.errors import ArgumentError, ScheduleError
from ansorlite.features import extract
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces import builders
from ansorlite.spaces.builders import Derived, builder_of, sketches_of
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests import workloads
from tests.targets import WIDE
from tests.unit.records.samples import measurement

TASK = Task(workloads.matmul_relu(24, 32, 16), WIDE)


def made(space: builders.Given) -> tuple[Sketch, ...]:
    return sketches_of(TASK, builder_of(space))


def tiled(s: Schedule) -> None:
    c, d = s.stage("C"), s.stage("D")
    i, j, k = c.loops
    i0, i1 = s.split(i, s.sample_tile(i, parts=2))
    j0, j1 = s.split(j, s.sample_tile(j, parts=2, innermost=(8, 16), name="tile_x"))
    s.reorder(i0, j0, k, i1, j1)
    s.reverse_compute_at(d, s.sample((i0, j0)))
    s.parallel((i0, j0), depth=s.sample((1, 2)))
    s.vectorize(j1)
    s.unroll(i1, max_steps=s.sample((0, 16, 64), weights=(1, 2, 1)))


def test_a_function_is_one_space() -> None:
    (sketch,) = made(tiled)
    assert [hole.name for hole in sketch.holes] == ["C.i", "tile_x", "x2", "x3", "x4"]
    rows = TileSpace(sketch).sample(4000, np.random.default_rng(0))
    assert sketch.valid(rows).all()
    unroll = [hole.name for hole in sketch.holes].index("x4")
    assert 0.4 < (rows[:, unroll] == 1).mean() < 0.6, "drawn by weight"
    assert extract(sketch, rows).shape[0] == 4000


def test_what_has_no_sample_is_one_program() -> None:
    (sketch,) = made(lambda s: s.reorder(*reversed(s.stage("D").loops)))
    assert sketch.holes == ()
    assert TileSpace(sketch).sample(3, np.random.default_rng(0)).shape == (3, 0)
    assert len(np.unique(sketch.canonical(np.zeros((3, 0), np.int64)), axis=0)) == 1


def test_a_branch_on_a_sample_makes_a_structure_each() -> None:
    def branching(s: Schedule) -> None:
        d = s.stage("D")
        if s.sample((0, 1), name="reordered"):
            s.reorder(*reversed(d.loops))
        for _ in range(s.sample((1, 2), name="times")):
            s.split(s.stage("D").loops[0], [None, 2])

    assert len({sketch.text for sketch in made(branching)}) == 4


def test_arithmetic_on_samples_is_a_column() -> None:
    def steps(s: Schedule) -> None:
        width = s.sample((1, 2, 4), name="width")
        s.split(s.stage("D")["j"], [None, width * 2])

    (sketch,) = made(steps)
    texts = {str(sketch.trace.decided((choice,))) for choice in range(3)}
    assert {"(None, 2)" in t or "(None, 4)" in t or "(None, 8)" in t for t in texts} == {True}
    assert len(texts) == 3


def test_rows_whose_factors_do_not_cover_the_loop_are_invalid() -> None:
    (sketch,) = made(lambda s: s.split(s.stage("D")["j"], [s.sample((2, 4), name="a"), s.sample((4, 8), name="b")]))
    rows = np.array(list(itertools.product((0, 1), (0, 1))), np.int64)
    assert sketch.valid(rows).tolist() == [False, False, False, True]


def test_several_functions_builders_and_rules() -> None:
    class Builder:
        def spaces(self, task: Task) -> Sequence[Sketch]:
            return derive(task)[:1]

    assert len(made([tiled, lambda _: None])) == 2
    assert [sketch.text for sketch in made(Builder())] == [derive(TASK)[0].text]
    assert [s.text for s in made(CPU_RULES)] == [s.text for s in made(Derived())]


def late(_: Schedule) -> None:
    while True:
        time.sleep(0.01)


def unlike(s: Schedule, calls: list[int] = []) -> None:  # noqa: B006 - that is the mistake
    calls.append(1)
    s.split(s.stage("D")["j"], [None, len(calls)])


def raises(_: Schedule) -> None:
    raise ZeroDivisionError("by me")


def endless(s: Schedule) -> None:
    for n in itertools.count():
        if not s.sample((0, 1), name=f"more {n}"):
            break


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def speechless(_: Schedule) -> None:
    raise SpeechlessError


def talkative(_: Schedule) -> None:
    raise ValueError("one\ntwo" + "!" * 1000)


def leaving(_: Schedule) -> None:
    raise SystemExit(3)


def waits(s: Schedule) -> Iterator[None]:
    s.split(s.stage("D")["j"], [None, 2])
    yield


async def awaited(s: Schedule) -> None:
    s.split(s.stage("D")["j"], [None, 2])


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (speechless, "fails with tests.unit.spaces.test_builders.SpeechlessError: <exception str() failed> (line"),
        (talkative, "fails with ValueError: one two!!!"),
        (leaving, "fails with SystemExit: 3 (line"),
        (waits, "it makes a generator, which nobody runs"),
        (awaited, "it makes a coroutine, which nobody runs"),
        (lambda s: s.sample(None), "'NoneType' object is not iterable (line"),
        (lambda s: s.sample(range(10**9)), "a sample has more than 65,536 choices"),
        (lambda s: s.sample((1, 2), weights=itertools.repeat(1.0)), "has 2 choices and the weights [1.0, 1.0, 1.0]"),
        (lambda s: s.sample_tile(s.stage("C")["i"], 2, innermost=range(10**9)), "innermost has more than 65,536 choices"),
        (lambda s: s.compute_at("D", s.stage("C")["i"]), "stage D is an output"),
        (lambda s: (s.split(s.stage("C")["i"], [None, 2]), s.split(s.stage("C")["i"], [None, 2])), "is gone: it was split into"),
        (late, "the schedule function late has not returned after"),
        (unlike, "the schedule function unlike does not do the same when it is run again"),
        (raises, "the schedule function raises fails with ZeroDivisionError: by me (line"),
        (endless, "the schedule function endless makes more than 64 structures: it needs to know what is chosen for more"),
        (lambda s: int(s.sample(range(1000))), "more than 64 structures"),
        (lambda s: s.split(s.stage("C")["i"], [2, 2]), "cover fewer"),
        (lambda s: s.split(s.stage("D")["j"], [s.sample((1, 2)), 4]), "the factors a sample, 4 cover fewer"),
        (
            lambda s: (lambda x: s.split(s.stage("D")["j"], [x, 9 - x]))(s.sample((1, 8))),
            "none of its choices go together",
        ),
        (lambda s: s.vectorize(s.stage("C")["i"]), "is vectorized, but k is the innermost one"),
    ],
)
def test_what_is_wrong_with_a_function(function: builders.ScheduleFunction, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "PATIENCE", 0.3)
    with pytest.raises(ScheduleError) as error:
        made(function)
    assert why in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    assert "/ansorlite/" not in str(error.value), "lines are the user's"


def test_nothing_is_read_before_it_is_there() -> None:
    a = te.placeholder((8, 12), name="A")
    b = te.compute((8, 12), lambda i, j: te.exp(a[i, j]), name="B")
    c = te.compute((8, 12), lambda i, j: b[i, j] + 1.0, name="C")
    task = Task([a, te.compute((8, 12), lambda i, j: b[i, j] * c[i, j], name="D")], WIDE)
    with pytest.raises(
        ScheduleError, match="C reads it too, and would read what is not there yet; compute C in loops of D first"
    ):
        sketches_of(task, builder_of(lambda s: s.compute_at("B", s.stage("D")["i"])))


@pytest.mark.parametrize("space", [late, unlike, raises, endless, waits, lambda s: s.sample(range(10**9))])
def test_a_space_that_is_none_costs_nothing(
    space: builders.ScheduleFunction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded is there, no process was started, and no thread goes on."""
    monkeypatch.setattr(builders, "PATIENCE", 0.3)
    task = al.Task(workloads.matmul_relu(8, 8, 8))
    with al.Database(tmp_path / "t.db") as database:
        database.add(task, measurement(1))
    before = (tmp_path / "t.db").read_bytes()
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **_: started.append(words))
    with pytest.raises(ScheduleError):
        al.tune(task, space=space, trials=8, database=tmp_path / "t.db", progress=False)
    assert (tmp_path / "t.db").read_bytes() == before
    assert started == []
    end = time.monotonic() + 10
    while left := [thread.name for thread in threading.enumerate() if thread.name.startswith("schedule function")]:
        assert time.monotonic() < end, left
        time.sleep(0.01)


@pytest.mark.parametrize("space", [5, [], [5], "nowhere.py:space", "no place", "ansorlite.task:nothing"])
def test_what_is_no_space(space: object) -> None:
    with pytest.raises(ArgumentError):
        al.compile(Task(workloads.matmul(4, 4, 4)), space=space)  # type: ignore[call-overload]


def test_a_space_is_tuned_and_compiled(tmp_path: Path) -> None:
    task = al.Task(workloads.matmul_relu(24, 32, 16))
    result = al.tune(task, space=tiled, trials=6, database=tmp_path / "t.db")
    assert result.best_latency < 1
    kernel = al.compile(task, space=tiled, database=tmp_path / "t.db")
    a, b = (np.random.default_rng(n).random(shape, dtype=np.float32) for n, shape in enumerate([(24, 16), (16, 32)]))
    np.testing.assert_allclose(kernel(a, b), np.maximum(a @ b, 0), rtol=1e-5)
    assert "s.reverse_compute_at" in kernel.trace
    assert al.replay(task, kernel.trace).source("loops").partition("(")[2] == kernel.source("loops").partition("(")[2]
    by_hand = al.compile(task, space=lambda s: s.reorder(*reversed(s.stage("C").loops)), database=tmp_path / "t.db")
    assert by_hand.trace != kernel.trace, "of another space no program is taken"
    np.testing.assert_allclose(by_hand(a, b), np.maximum(a @ b, 0), rtol=1e-5)
