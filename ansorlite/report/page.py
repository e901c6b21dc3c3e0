"""A database as one HTML page, with nothing to load: what became of each task, trial by trial."""

from __future__ import annotations

import html
import math
import shlex
from collections.abc import Sequence
from typing import Final

from ansorlite.records.measurement import Record
from ansorlite.report.histories import History
from ansorlite.report.text import duration, plural, speed_up, times
from ansorlite.visible import visible

_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } th, td { padding: .15rem .9rem .15rem 0; text-align: right }
th:first-child, td:first-child { text-align: left } th { font-weight: normal; opacity: .6 }
svg { display: block; width: 100%; height: 9rem; margin: .5rem 0 }
polyline { fill: none; stroke: #2a78d6; stroke-width: 2; vector-effect: non-scaling-stroke }
code { font-size: 13px; overflow-wrap: anywhere } .dim { opacity: .6 }
"""


def escape(text: str) -> str:
    """As HTML shows it, and terminals too."""
    return html.escape(visible(text))


#: Failures of a task that are told, the latest.
_FAILURES: Final = 5
_WIDTH, _HEIGHT = 1000.0, 100.0


def page(title: str, histories: Sequence[History]) -> str:
    """The page; ``title`` says which database it is."""
    trials = sum(len(history.records) for history in histories)
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>',
            f"<h1>{escape(title)}</h1>\n<p>{plural(len(histories), 'task')}, {plural(trials, 'measurement')}</p>",
            _table(histories),
            *(_section(number, history) for number, history in enumerate(histories)),
            "</html>\n",
        ]
    )


def _table(histories: Sequence[History]) -> str:
    head = "".join(f"<th>{name}" for name in ("task", "measured", "failed", "as written", "best", "speed-up"))
    rows = (
        f'<tr><td><a href="#task{number}">{escape(history.name)}</a>'
        + "".join(f"<td>{cell}" for cell in (len(history.records), len(history.failures), *_latencies(history)))
        for number, history in enumerate(histories)
    )
    return "<table>\n<tr>" + head + "\n" + "\n".join(rows) + "\n</table>"


def _latencies(history: History) -> tuple[str, str, str]:
    return duration(history.naive), duration(history.best), times(speed_up(history.naive, history.best))


def _section(number: int, history: History) -> str:
    failures = "\n".join(map(_failure, history.failures[-_FAILURES:]))
    target = "<br>".join(escape(line) for line in (history.target, history.device) if line)
    return (
        f'<h2 id="task{number}">{escape(history.name)}</h2>\n<p class="dim">{target}</p>\n'
        f"{_curve(history.curve)}\n<p><code>{escape(history.task)}</code></p>"
        + (f"\n<p>{plural(len(history.failures), 'failure')}, the latest:</p>\n<ul>\n{failures}\n</ul>" if failures else "")
    )


def _failure(record: Record) -> str:
    measurement = record.measurement
    reason = measurement.error.partition("\n")[0]
    return f"<li>{measurement.outcome.value}: {escape(reason)}<br><code>{escape(shlex.join(record.command))}</code>"


def _curve(curve: Sequence[float | None]) -> str:
    """The best latency after each measurement as a staircase, on a logarithmic scale."""
    known = [(position, math.log(seconds)) for position, seconds in enumerate(curve, 1) if seconds]
    if not known:
        return '<p class="dim">no program ran</p>'
    (begin, highest), lowest = known[0], known[-1][1]
    across = _WIDTH / max(1, len(curve) - begin)
    down = _HEIGHT / ((highest - lowest) or 1.0)
    points, before = ["0,0"], highest
    for position, height in known:
        if height != before or position == len(curve):
            x = (position - begin) * across
            points += [f"{x:.1f},{(highest - before) * down:.1f}", f"{x:.1f},{(highest - height) * down:.1f}"]
            before = height
    first, last = duration(math.exp(highest)), duration(math.exp(lowest))
    return (
        f'<svg viewBox="0 -4 {_WIDTH:.0f} {_HEIGHT + 8:.0f}" preserveAspectRatio="none" role="img" '
        f'aria-label="from {first} to {last}"><polyline points="{" ".join(points)}"/></svg>\n'
        f'<p class="dim">{first} after measurement {begin}, {last} after {len(curve)} (logarithmic)</p>'
    )
