"""What the user wants of each of several models: ``--bound a.onnx=5ms``, ``--weight a.onnx=2``, ``--stop-below 0.1%``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from ansorlite.cli.options import parse_assignments
from ansorlite.errors import ArgumentError
from ansorlite.task_scheduler import OBJECTIVES, Goal

_Command = TypeVar("_Command", bound=Callable[..., Any])

_UNITS: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NUMBER: Final = r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"


def share(text: str) -> float:
    """``0.1%`` or ``0.001``, as 0.001.

    >>> share("0.1%"), share("0.25")
    (0.001, 0.25)
    """
    found = re.fullmatch(rf"{_NUMBER}(%?)", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no share; write 0.1% or 0.001")
    return float(found[1]) / (100 if found[2] else 1)


def options(command: _Command) -> _Command:
    """The options that say what is wanted."""
    each = (
        click.option(
            "--objective",
            type=click.Choice(list(OBJECTIVES)),
            default="latency",
            show_default=True,
            help="What to lower over several SOURCEs: their sum; their sum, each down to its bound; their geometric mean.",
        ),
        click.option("--bound", "bounds", multiple=True, metavar="SOURCE=TIME", help="When a SOURCE is fast enough: a.onnx=5ms."),
        click.option("--reference", "references", multiple=True, metavar="SOURCE=TIME", help="What speed-ups are told against."),
        click.option("--weight", "weights", multiple=True, metavar="SOURCE=NUMBER", help="How much it counts. [default: 1]"),
        click.option(
            "--stop-below",
            type=share,
            default="0%",
            show_default=True,
            metavar="SHARE",
            help="Stop a task when its next round is expected to gain less of the objective.",
        ),
    )
    for option in reversed(each):
        command = option(command)
    return command


def goals(sources: Sequence[str], bounds: tuple[str, ...], references: tuple[str, ...], weights: tuple[str, ...]) -> list[Goal]:
    """One for each of ``sources``.

    Raises:
        ArgumentError: one is for no source, or says no time or number.
    """
    bound = {name: _seconds("bound", name, text) for name, text in _named(sources, bounds, "--bound a.onnx=5ms").items()}
    reference = {
        name: _seconds("reference", name, text) for name, text in _named(sources, references, "--reference a.onnx=5ms").items()
    }
    weight = {name: _number(name, text) for name, text in _named(sources, weights, "--weight a.onnx=2").items()}
    return [Goal(weight.get(name, 1.0), bound.get(name), reference.get(name)) for name in sources]


def _named(sources: Sequence[str], items: tuple[str, ...], example: str) -> dict[str, str]:
    given = parse_assignments(items, example)
    unknown = next((name for name in given if name not in sources), None)
    if unknown is not None:
        raise ArgumentError(f"{unknown!r} is none of the sources; they are: {', '.join(sources)}")
    return given


def _seconds(what: str, name: str, text: str) -> float:
    found = re.fullmatch(rf"{_NUMBER}({'|'.join(_UNITS)})", text)
    if found is None:
        raise ArgumentError(f"the {what} of {name} is {text!r}; write a number and a unit ({', '.join(_UNITS)}), as in 5ms")
    return float(found[1]) * _UNITS[found[2]]


def _number(name: str, text: str) -> float:
    found = re.fullmatch(_NUMBER, text)
    if found is None:
        raise ArgumentError(f"the weight of {name} is {text!r}; write a number greater than 0, as in 2 or 0.5")
    return float(found[1])
