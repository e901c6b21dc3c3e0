"""Numbers as people read them."""

from __future__ import annotations

import math


def duration(seconds: float | None) -> str:
    """Seconds with a unit that leaves three digits; a dash where there are none.

    >>> duration(0.00123), duration(4.5e-7), duration(12.34), duration(None), duration(float("inf"))
    ('1.23 ms', '450 ns', '12.3 s', '-', '-')
    """
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor * 0.9995:
            return f"{_digits(seconds / factor)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def times(ratio: float) -> str:
    """A speed-up.

    >>> times(12.345), times(0.5), times(1234.0), times(float("nan"))
    ('12.3x', '0.50x', '1234x', '-')
    """
    return f"{_digits(ratio, small=2)}x" if math.isfinite(ratio) else "-"


def percent(share: float) -> str:
    """A share, to two digits.

    >>> percent(0.123), percent(0.00044), percent(0.0)
    ('12 %', '0.044 %', '0 %')
    """
    return f"{float(f'{share * 100:.2g}'):g} %" if math.isfinite(share) else "-"


def plural(number: int, noun: str) -> str:
    """So many of a thing.

    >>> plural(1, "task"), plural(0, "task")
    ('1 task', '0 tasks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def clock(seconds: float | None) -> str:
    """Minutes and seconds of waiting.

    >>> clock(75.2), clock(3700), clock(None)
    ('1:15', '1:01:40', '-')
    """
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def speed_up(before: float | None, after: float | None) -> float:
    """How many times faster; NaN where either is not known."""
    known = before is not None and after is not None and math.isfinite(before) and math.isfinite(after) and after > 0
    return before / after if known else math.nan  # type: ignore[operator]


def _digits(value: float, small: int = 2) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.{small}f}"
