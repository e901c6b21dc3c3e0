"""What records of other machines are good for: they name programs that may be worth trying here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ansorlite.records.measurement import Measurement
from ansorlite.sketch.candidate import NAIVE, Candidate

#: So many programs of a task are tried because of what other machines say of them.
MOST: Final = 3


def made_here(measurement: Measurement) -> bool:
    """Whether a measurement counts on this machine."""
    return measurement.here


def hints(
    measured: Sequence[Measurement], has: Callable[[Candidate], bool], counts: Callable[[Measurement], bool] = made_here
) -> list[Candidate]:
    """The programs that other machines say are the fastest of a task, but for those that were tried on the one in question.

    What was tried counts, so that after the best few no others follow.

    Args:
        measured: everything that is known of the task.
        has: whether the task has such a program; asked only of those that may be among the answer.
        counts: whether a measurement was made on the machine in question; by default, this one.
    """
    tried = {m.candidate for m in measured if counts(m)}
    best: list[Candidate] = []
    for candidate in _said(measured, counts):
        if len(best) == MOST:
            break
        if candidate in tried or has(candidate):
            best.append(candidate)
    return [candidate for candidate in best if candidate not in tried]


def promising(candidates: Sequence[Candidate], measured: Sequence[Measurement], default: Candidate) -> list[Candidate]:
    """Those of ``candidates`` that other machines do not say to be slower than ``default``.

    The loops as written are not promising where nobody compared them with it.
    """
    said = _said(measured, made_here)
    better = said[: said.index(default)] if default in said else [candidate for candidate in said if candidate != NAIVE]
    return [candidate for candidate in candidates if candidate in better]


def _said(measured: Sequence[Measurement], counts: Callable[[Measurement], bool]) -> list[Candidate]:
    """What other machines have measured, the fastest first, each once.

    Where all records say what their machines could do then, what could have been done in that time is compared, not the time.
    """
    others = [m for m in measured if m.sound and not counts(m)]
    known = all(m.peak for m in others)
    said = sorted(others, key=lambda m: (m.latency or 0.0) * (m.peak if known else 1.0))
    return list(dict.fromkeys(m.candidate for m in said))
