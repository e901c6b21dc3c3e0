"""Where tables and sentences are printed."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ansorlite.visible import visible


def say(text: str, stderr: bool = False) -> None:
    """Print a line of plain text."""
    click.echo(visible(text), err=stderr)


def screen(stderr: bool = False) -> Console:
    """A console that prints what it is given: a name or a path with brackets or colons is neither markup nor an emoji."""
    return _Screen(stderr=stderr, markup=False, emoji=False, highlight=False)


class _Screen(Console):
    """Makes every string visible, also those in tables; a ``Text`` must be made of what is."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)
