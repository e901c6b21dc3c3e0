"""What tuning several models came to: a row each, and the objective in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.table import Table

from ansorlite.report.tables import cropped
from ansorlite.report.text import duration, percent, speed_up, times
from ansorlite.task_scheduler import Goal, objective_of
from ansorlite.tuner.result import Stop, TuneResult


def against_naive(objective: str, goals: Sequence[Goal], result: TuneResult) -> list[Goal]:
    """``goals``, where the objective is about speed-ups each with a reference: if need be its loops as written."""
    if objective != "geomean":
        return list(goals)
    naive = [seconds if math.isfinite(seconds) and seconds > 0 else None for seconds in result.naive_model_latencies]
    return [Goal(g.weight, g.bound, g.reference or seconds) for g, seconds in zip(goals, naive, strict=True)]


def objective_value(objective: str, goals: Sequence[Goal], result: TuneResult) -> float:
    """The objective of the best programs; infinite while a task has none that runs."""
    latencies = np.array(result.model_latencies)
    return (
        objective_of(objective, against_naive(objective, goals, result))(latencies) if np.isfinite(latencies).all() else math.inf
    )


def models(names: Sequence[str], goals: Sequence[Goal], objective: str, result: TuneResult) -> Table:
    """A row a model: what it took as written, what it takes now, and how that stands to what was wanted."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("model")
    for name in ("weight", "naive", "best", "bound" if objective == "bounds" else "reference", "speed-up"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = zip(names, against_naive(objective, goals, result), result.naive_model_latencies, result.model_latencies, strict=True)
    for name, goal, naive, best in rows:
        table.add_row(
            cropped(name),
            f"{goal.weight:g}",
            duration(naive),
            duration(best),
            duration(goal.bound if objective == "bounds" else goal.reference),
            times(speed_up(goal.reference or naive, best)),
        )
    return table


def verdict(objective: str, goals: Sequence[Goal], result: TuneResult) -> str:
    """The objective, what one more round would have been expected to gain, and why it stopped."""
    value = objective_value(objective, goals, result)
    if objective == "geomean":
        reached = f"geometric mean of speed-ups {times(1 / value) if math.isfinite(value) and value else '-'}"
    else:
        reached = f"{'total latency' if objective == 'latency' else 'latency above the bounds counted'} {duration(value)}"
    gain = result.expected_gain
    expected = f"one more round is expected to gain {percent(gain)}" if math.isfinite(gain) else "too few rounds for a forecast"
    reason = "every model is below its bound" if _satisfied(objective, goals, result) else result.stopped.value
    return f"{reached}; {expected}; stopped: {reason}"


def _satisfied(objective: str, goals: Sequence[Goal], result: TuneResult) -> bool:
    if objective != "bounds" or result.stopped is not Stop.GAIN:
        return False
    return all(
        goal.bound is not None and latency <= goal.bound for goal, latency in zip(goals, result.model_latencies, strict=True)
    )
