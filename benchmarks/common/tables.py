"""Tables for a terminal and for a page."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table as Grid

from benchmarks.common.spread import Spread

#: Where there is nothing to say.
DASH: Final = "–"
#: Columns of text that goes into a file.
_WIDE: Final = 250


@dataclass(frozen=True)
class Table:
    """Text in rows; the first column is left aligned, the others right."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def markdown(table: Table) -> str:
    """As it stands on a page."""
    lines = [table.header, ("---", *["---:"] * (len(table.header) - 1)), *table.rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join([body, *table.notes])


def show(table: Table) -> None:
    """Print it."""
    screen = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    grid = Grid(title=table.title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    for number, name in enumerate(table.header):
        grid.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*row)
    screen.print(grid)
    for note in table.notes:
        screen.print(note)


def geometric_mean(values: Iterable[float]) -> float | None:
    """``None`` of nothing."""
    found = list(values)
    return statistics.geometric_mean(found) if found else None


def times(ratio: float | None) -> str:
    """A ratio."""
    return DASH if ratio is None else f"{ratio:.2f}"


def spread(ratio: Spread | None) -> str:
    """A ratio with its quartiles."""
    return DASH if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def against(peer: str) -> str:
    """The heading of ratios to a peer."""
    return f"÷ {peer}"
