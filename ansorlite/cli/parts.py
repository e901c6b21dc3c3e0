"""The options that choose a part of tuning: by the name that the house has for it, or one of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ansorlite.api.makers import Part

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option(name: str, part: Part[Any], default: str | None, purpose: str) -> Callable[[_Command], _Command]:
    """An option that takes one of the names of ``part``, or FILE.py:NAME, which is looked up when it is used.

    Without a default, it is what the preset says.
    """

    def check(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in part.known and ":" not in value:
            raise click.BadParameter(f"{value!r} is none of {', '.join(part.known)}, nor FILE.py:NAME.")
        return value

    told = purpose if default is not None else f"{purpose}  [default: as the preset]"
    shape = f"[{'|'.join(part.known)}{'' if part.example is None else f'|{part.example}'}|FILE.py:NAME]"
    return click.option(name, metavar=shape, callback=check, default=default, show_default=True, help=told)
