"""What the benchmarks' command lines share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence

import click
from rich.console import Console


def chosen(names: Sequence[str], known: Iterable[str], what: str) -> list[str]:
    """Those of ``known`` that are asked for by name, or by ``all``.

    Raises:
        click.UsageError: there is no such ``what``.
    """
    every = list(known)
    unknown = [name for name in names if name != "all" and name not in every]
    if unknown:
        raise click.UsageError(f"there is no {what} {', '.join(unknown)}; the {what}s are: all, {', '.join(every)}")
    return every if "all" in names else list(dict.fromkeys(names))


def present(against: str, peers: Iterable[str], missing: Callable[[str], str], screen: Console) -> tuple[str, ...]:
    """The peers asked for that are installed; says which are not, and why.

    Raises:
        click.UsageError: there is no such peer.
    """
    every = list(peers)
    names = [name for name in against.split(",") if name]
    unknown = [name for name in names if name not in every]
    if unknown:
        raise click.UsageError(f"there is no peer {', '.join(unknown)}; the peers are: {', '.join(every)}")
    reasons = {name: missing(name) for name in names}
    for name, reason in reasons.items():
        if reason:
            screen.print(f"without {name}: {reason}", style="yellow")
    return tuple(name for name, reason in reasons.items() if not reason)


def command_line(module: str) -> str:
    """The command that is running, as one types it."""
    return " ".join([f"python -m {module}", *map(shlex.quote, sys.argv[1:])])
