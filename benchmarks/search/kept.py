"""Tables of text that commands made for the page: a file of JSON, by title."""

from __future__ import annotations

import json
from pathlib import Path

from ansorlite.errors import ArgumentError
from ansorlite.writing import replacing
from benchmarks.common.tables import Table as Grid


def kept(path: Path) -> dict[str, Grid]:
    """What is in the file; nothing if there is none.

    Raises:
        ArgumentError: it holds something else.
    """
    if not path.exists():
        return {}
    try:
        return {title: _grid(title, **facts) for title, facts in json.loads(path.read_text()).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ArgumentError(f"{path} does not hold tables of the page ({error}); delete it, and make them again") from error


def _grid(title: str, header: list[str], rows: list[list[str]], notes: list[str]) -> Grid:
    return Grid(title, tuple(header), tuple(map(tuple, rows)), tuple(notes))


def keep(path: Path, title: str, grid: Grid) -> None:
    """Put a table into the file, in the place of that of the same title."""
    tables = {**kept(path), title: grid}
    facts = {name: {"header": each.header, "rows": each.rows, "notes": each.notes} for name, each in tables.items()}
    with replacing(path) as part:
        part.write_text(json.dumps(facts, indent=1) + "\n")
