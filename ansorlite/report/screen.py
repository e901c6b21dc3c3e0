"""Where tables and sentences are printed."""

from __future__ import annotations

from rich.console import Console


def screen(stderr: bool = False) -> Console:
    """A console that prints what it is given: a name or a path with brackets or colons is neither markup nor an emoji."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
