"""The score board as a fold over events, and what is drawn of it."""

from __future__ import annotations

import io
import itertools
import math

import pytest
from rich.console import Console

from ansorlite import te
from ansorlite.records.measurement import Outcome
from ansorlite.report.board import Board
from ansorlite.report.compare import Comparison, compare, time_alone
from ansorlite.report.progress import LineProgress, LiveProgress, listener
from ansorlite.report.tables import outcome, standing, summary
from ansorlite.search import RoundLog
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.task import Task
from ansorlite.tuner.events import Event, Finished, Measured, RoundFinished, Started
from ansorlite.tuner.result import Stop, TaskResult, Trial, TuneResult


def task(name: str, extent: int) -> Task:
    a = te.placeholder((extent,), name="a")
    return Task([a, te.compute((extent,), lambda i: te.exp(a[i]), name=name)])


TASKS = ((task("conv", 8), 3), (task("pool", 4), 1))
BEST = Candidate("1")


def trial(
    index: int, candidate: Candidate, latency: float | None, outcome: Outcome = Outcome.OK, restored: bool = False
) -> Measured:
    error = None if latency is not None else "it crashed"
    return Measured(Trial(index, candidate, outcome, latency, error, 0.0, restored))


def events() -> list[Event]:
    return [
        Started(TASKS, 10, None),
        trial(0, NAIVE, 1.0, restored=True),
        trial(1, NAIVE, 0.4),
        trial(0, BEST, 0.1),
        trial(0, Candidate("2"), None, Outcome.CRASH),
        trial(0, Candidate("3"), None, Outcome.EARLY_STOPPED),
        RoundFinished(0, 1, RoundLog(0, 3, (3,), 0, 100, 0, 3, 1, 0.75, 0.1, 0.0, 0.0), 0.01),
    ]


def board(extra: tuple[Event, ...] = ()) -> Board:
    made = Board()
    for event in (*events(), *extra):
        made(event)
    return made


def result() -> TuneResult:
    tasks = (TaskResult(TASKS[0][0], (3,), 1.0, 0.1, BEST, 4, 1), TaskResult(TASKS[1][0], (1,), 0.4, 0.4, NAIVE, 1, 0))
    phases = {"search": 1.0, "compile": 2.0, "measure": 3.0, "check": 0.5, "other": 0.5}
    return TuneResult(0.7, 5, 1, 7.0, (), tasks, phases, Stop.TRIALS, 0.01)


def printed(renderable: object, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_the_board_adds_up() -> None:
    made = board()
    assert (made.done, made.restored, made.errors, made.current) == (5, 1, 1, 0)
    conv, pool = made.lines
    assert (conv.name, conv.weight, conv.naive, conv.best, conv.trials, conv.errors, conv.correlation) == (
        "conv 8 -> 8", 3, 1.0, 0.1, 4, 1, 0.75,
    )  # fmt: skip
    assert (pool.naive, pool.best) == (0.4, 0.4)
    assert made.best == pytest.approx(3 * 0.1 + 0.4)
    assert made.naive == pytest.approx(3.4)


def test_the_sum_is_unknown_while_a_task_is() -> None:
    made = Board()
    for event in events()[:2]:
        made(event)
    assert math.isinf(made.best)


def test_time_left_follows_the_pace_of_new_trials_and_the_limit() -> None:
    made = board()
    assert made.seconds_left(8.0) == pytest.approx(8.0 / 4 * 5)
    made.time_limit = 10.0
    assert made.seconds_left(8.0) == pytest.approx(2.0)
    assert Board().seconds_left(1.0) is None


def test_the_standing_shows_every_task_or_those_touched_last() -> None:
    lines = board().lines
    everything = printed(standing(lines, 0, room=10))
    assert "conv 8 -> 8" in everything
    assert "10.0x" in everything
    assert "pool 4 -> 4" in everything
    short = printed(standing(lines, 0, room=1))
    assert "conv 8 -> 8" in short
    assert "pool 4 -> 4" not in short
    assert "and 1 more task" in short


def test_the_outcome_ends_in_the_sum() -> None:
    text = printed(outcome(result()))
    assert [line.split()[0] for line in text.splitlines() if line.strip()] == ["task", "conv", "pool", "all,"]
    assert text.splitlines()[-1].split()[-5:] == ["3.40", "s", "700", "ms", "4.86x"]


def test_a_narrow_screen_crops_names_and_no_numbers() -> None:
    lines = printed(outcome(result()), width=56).splitlines()
    assert max(map(len, lines)) <= 56
    assert lines[-1].split()[-5:] == ["3.40", "s", "700", "ms", "4.86x"]


def test_the_summary_says_where_the_time_went() -> None:
    text = summary(result())
    assert text == (
        "best 700 ms, 4.86x as fast as the loops as written; 5 trials (1 of them from earlier runs) in 7.00 s "
        "(search 1.00 s, compile 2.00 s, measure 3.00 s, check 500 ms, other 500 ms)"
    )


def test_a_log_gets_a_line_a_round() -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    log = LineProgress(console)
    for event in (*events(), Finished(result())):
        log(event)
    assert isinstance(console.file, io.StringIO)
    (line,) = console.file.getvalue().splitlines()
    assert line.startswith("5/10 trials · best 700 ms (4.86x naive) · 1 error · ")
    assert line.endswith("conv 8 -> 8: 100 ms · model's rank correlation 0.75 · next round's gain 1 %")


def test_a_terminal_gets_a_live_display() -> None:
    console = Console(file=io.StringIO(), width=100, height=20, force_terminal=True)
    with listener(None, console) as listen:
        assert isinstance(listen, LiveProgress)
        for event in events():
            listen(event)
        text = printed(listen.render())
    assert "conv 8 -> 8" in text
    assert "5/10 trials" in text


def test_no_terminal_is_quiet_unless_asked() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    for progress, lines in ((None, 0), (False, 0), (True, 1)):
        with listener(progress, console) as listen:
            for event in events():
                listen(event)
        assert isinstance(console.file, io.StringIO)
        assert len(console.file.getvalue().splitlines()) == lines


def test_both_sides_have_turns_of_several_calls() -> None:
    calls: list[str] = []
    result = compare(lambda: calls.append("ours"), lambda: calls.append("other"), seconds=0.0)
    turns = [side for side, _ in itertools.groupby(calls)]
    assert turns == ["ours", "other"] * 5
    assert result.ratio is not None
    assert time_alone(lambda: calls.append("alone"), 0.0) >= 0
    assert calls.count("alone") >= 10


def test_the_ratio_is_how_many_times_faster_ours_is() -> None:
    assert Comparison(0.5, 1.0).ratio == 2.0
    assert Comparison(0.5, None).ratio is None
