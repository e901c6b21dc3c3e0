"""Tables: the standing while tuning runs, and what it came to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ansorlite.report.board import Line
from ansorlite.report.text import duration, plural, speed_up, times
from ansorlite.tuner.result import TuneResult
from ansorlite.visible import visible


def standing(lines: Sequence[Line], current: int | None, room: int) -> Table:
    """One row a task. Where there are more tasks than ``room``, those touched last.

    Args:
        current: index of the task whose turn it is.
        room: how many rows fit.
    """
    table = _table("task", "uses", "trials", "errors", "naive", "best", "speed-up")
    latest = sorted(range(len(lines)), key=lambda index: -lines[index].touched)[: max(1, room)]
    for index in sorted(latest):
        line = lines[index]
        table.add_row(
            cropped(line.name),
            str(line.weight),
            str(line.trials),
            str(line.errors) if line.errors else "",
            duration(line.naive),
            duration(line.best),
            times(speed_up(line.naive, line.best)),
            style="bold" if index == current else "",
        )
    if len(latest) < len(lines):
        table.caption = f"and {plural(len(lines) - len(latest), 'more task')}"
    return table


def outcome(result: TuneResult) -> Table:
    """What tuning came to: a row a task, and their sum for a model."""
    table = _table("task", "uses", "trials", "errors", "naive", "best", "speed-up")
    for task in result.tasks:
        table.add_row(
            cropped(task.name),
            str(task.weight),
            str(task.trials),
            str(task.errors) if task.errors else "",
            duration(task.naive),
            duration(task.best_latency),
            times(speed_up(task.naive, task.best_latency)),
        )
    if len(result.tasks) > 1:
        table.add_section()
        errors = sum(task.errors for task in result.tasks)
        table.add_row(
            cropped("all, by their uses"),
            str(sum(task.weight for task in result.tasks)),
            str(result.trials),
            str(errors) if errors else "",
            duration(result.naive_latency),
            duration(result.best_latency),
            times(speed_up(result.naive_latency, result.best_latency)),
            style="bold",
        )
    return table


def summary(result: TuneResult) -> str:
    """One sentence: what was won, from how many trials, in what time, spent on what."""
    gain = speed_up(result.naive_latency, result.best_latency)
    won = f"best {duration(result.best_latency)}" if math.isfinite(result.best_latency) else "no program for some tasks yet"
    faster = f", {times(gain)} as fast as the loops as written" if math.isfinite(gain) else ""
    restored = f" ({result.restored} of them from earlier runs)" if result.restored else ""
    spent = ", ".join(f"{phase} {duration(seconds)}" for phase, seconds in result.phases.items() if seconds >= 0.005)
    trials = plural(result.trials, "trial")
    stopped = "stopped by Ctrl-C: " if result.interrupted else ""
    return f"{stopped}{won}{faster}; {trials}{restored} in {duration(result.seconds)} ({spent or 'nothing to do'})"


def cropped(name: str) -> Text:
    """On one line, however little room there is; the numbers beside it are never cropped for it."""
    return Text(visible(name), no_wrap=True, overflow="ellipsis")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
