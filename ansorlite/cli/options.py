"""The options that several commands share, and the one way they print JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from ansorlite.errors import ArgumentError
from ansorlite.graph.precision import PRECISIONS

_Command = TypeVar("_Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else there.")
target = click.option(
    "--target",
    default="llvm",
    show_default=True,
    help="What to make programs for: llvm, a machine by name, cuda[:N], opencl[:N], emulated, or a file that `ansorlite target` "
    "wrote.",
)
space = click.option(
    "--space", metavar="FILE.py:NAME", help="Programs of your own to search: schedule functions, rules, or a builder, by name."
)
seed = click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of every random draw.")


def database(required: bool = False) -> Callable[[_Command], _Command]:
    """``--database``: where the best programs are kept."""
    return click.option(
        "--database",
        type=click.Path(dir_okay=False, path_type=Path),
        default=Path("tuning.db") if required else None,
        show_default=required,
        help="The file of measurements." if required else "The file of measurements; without one, default programs.",
    )


@dataclass(frozen=True)
class Given:
    """What a command is told of its sources.

    Attributes:
        sizes: the ints that a function is called with.
        shapes, dims: of a model's inputs, and of its open dimensions, as :func:`parse_shapes` and :func:`parse_dims` read them.
        precision: what a model's products of float32 multiply.
    """

    sizes: tuple[int, ...] = ()
    shapes: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    precision: str = PRECISIONS[0]

    def of(self, source: str, sources: tuple[str, ...]) -> Given:
        """So much of it as is for one of the sources."""
        shapes, dims = (by_source(sources, items)[source] for items in (self.shapes, self.dims))
        return replace(self, shapes=shapes, dims=dims)


def source(command: Callable[..., None]) -> Callable[..., None]:
    """The SOURCE argument, and how to turn it into tasks: ``source`` and ``given``."""
    return _with_given(command, click.argument("source"))


def sources(command: Callable[..., None]) -> Callable[..., None]:
    """One SOURCE or several: ``sources`` and ``given``."""
    return _with_given(command, click.argument("sources", metavar="SOURCE...", nargs=-1, required=True))


def _with_given(
    command: Callable[..., None], argument: Callable[[Callable[..., None]], Callable[..., None]]
) -> Callable[..., None]:
    @wraps(command)
    def gathered(
        *, sizes: tuple[int, ...], shapes: tuple[str, ...], dims: tuple[str, ...], precision: str, **others: Any
    ) -> None:
        command(given=Given(sizes, shapes, dims, precision), **others)

    options = (
        argument,
        click.option(
            "--args",
            "sizes",
            multiple=True,
            type=int,
            help="The ints that the function of kernels.py:function is called with: --args 512 512 512.",
        ),
        click.option("--shape", "shapes", multiple=True, metavar="NAME=D,D,...", help="Fix the shape of a model's input."),
        click.option(
            "--dim",
            "dims",
            multiple=True,
            metavar="NAME=N[,N...]",
            help="Fix an open dimension, or tune for several sizes of it.",
        ),
        click.option(
            "--precision",
            type=click.Choice(PRECISIONS),
            default=PRECISIONS[0],
            show_default=True,
            help="What products and convolutions of float32 in a model multiply; their sums stay float32.",
        ),
    )
    result: Callable[..., None] = gathered
    for option in reversed(options):
        result = option(result)
    return result


class IntListCommand(click.Command):
    """A command whose ``--args`` takes every int that follows it: ``--args 512 512 512``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _spread(args, "--args"))


def _spread(args: list[str], name: str) -> list[str]:
    """Repeat ``name`` before each of the ints after it, which is how click wants an option with several values."""
    spread: list[str] = []
    inside = False
    for position, word in enumerate(args):
        if word == name:
            following = args[position + 1] if position + 1 < len(args) else "nothing"
            if not _is_int(following):
                raise click.BadParameter(f"{following} follows; give ints, as in {name} 512 512 512", param_hint=f"'{name}'")
            inside = True
        elif inside and _is_int(word):
            spread += [name, word]
        else:
            inside = False
            spread.append(word)
    return spread


def _is_int(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def by_source(sources: tuple[str, ...], items: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """``a.onnx:data=1,3`` is for the source ``a.onnx``, and ``data=1,3`` for each of them."""
    of: dict[str, tuple[str, ...]] = dict.fromkeys(sources, ())
    for item in items:
        owner = next((source for source in sources if item.startswith(f"{source}:")), None)
        for source in sources if owner is None else (owner,):
            of[source] += (item if owner is None else item.removeprefix(f"{owner}:"),)
    return of


def parse_shapes(shapes: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """``("data=1,3,224,224",)`` as ``{"data": (1, 3, 224, 224)}``.

    Raises:
        ArgumentError: not of that form.
    """
    example = "--shape data=1,3,224,224"
    return {name: _ints(name, value, example) for name, value in (_assignment(item, example) for item in shapes)}


def parse_dims(dims: tuple[str, ...]) -> dict[str, int | tuple[int, ...]]:
    """``("batch=4", "length=32,128")`` as ``{"batch": 4, "length": (32, 128)}``.

    Raises:
        ArgumentError: not of that form.
    """
    example = "--dim batch=8,32"
    several = {name: _ints(name, value, example) for name, value in (_assignment(item, example) for item in dims)}
    return {name: sizes[0] if len(sizes) == 1 else sizes for name, sizes in several.items()}


def parse_assignments(items: tuple[str, ...], example: str) -> dict[str, str]:
    """``("data=x.npy",)`` as ``{"data": "x.npy"}``.

    Raises:
        ArgumentError: not of that form; the message shows ``example``.
    """
    return dict(_assignment(item, example) for item in items)


def _assignment(item: str, example: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not name or not equals or not value:
        raise ArgumentError(f"{item!r} should be a name, '=' and a value, as in {example}")
    return name, value


def _ints(name: str, value: str, example: str) -> tuple[int, ...]:
    try:
        return tuple(int(extent) for extent in value.replace("x", ",").split(","))
    except ValueError:
        raise ArgumentError(f"{name} is {value!r}; give integers with commas between, as in {example}") from None


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout. What is not a number (infinite, NaN) becomes ``null``."""
    click.echo(json.dumps(_finite(value), allow_nan=False))


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value
