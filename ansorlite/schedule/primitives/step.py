"""What a primitive is."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from ansorlite.errors import ScheduleError
from ansorlite.schedule.refs import LoopRef, Name, StageRef
from ansorlite.schedule.samples import Symbol
from ansorlite.schedule.structure import Sampled, Structure

#: What a primitive makes, for the ones after it to name.
Results: TypeAlias = tuple[StageRef | LoopRef, ...]


class Step:
    """One primitive with its arguments, which are the fields of a frozen dataclass: what a trace is a list of.

    Stages and loops among the arguments are named (:class:`StageRef`, :class:`LoopRef`), numbers may be symbols.
    """

    #: The method of :class:`~ansorlite.schedule.schedule.Schedule` that makes it.
    method: ClassVar[str]
    #: So many of its arguments are given by position; of one that takes a list of loops, each by itself.
    positional: ClassVar[int] = 1
    #: Whether the method gives a tuple of what it makes, even where that is one.
    several: ClassVar[bool] = False

    def apply(self, structure: Structure) -> Structure:
        """The structure after it.

        Raises:
            ScheduleError: it cannot be done; the message names the stage, the loop and the cure.
        """
        raise NotImplementedError

    def results(self, after: Structure) -> Results:  # noqa: ARG002
        """The stages or loops that it makes, in order."""
        return ()


class Rewrite(Step):
    """A primitive that changes the set of stages, and has nothing to choose. Programs of a task begin with the same ones."""


def arguments(step: Step) -> list[tuple[str, object]]:
    """The arguments of a primitive, by name."""
    return [(field.name, getattr(step, field.name)) for field in fields(cast("Any", step))]


#: What arguments are, for people. A number or place that is sampled needs no words of its own.
_WORDS: Final[dict[object, str]] = {
    StageRef: "a stage", LoopRef: "a loop", Name: "a name", str: "a text", int: "a whole number", bool: "True or False",
    NoneType: "None",
}  # fmt: skip


def check_arguments(step: Step) -> None:
    """
    Raises:
        ScheduleError: an argument is of another kind than the primitive takes.
    """
    hints = kinds(step)
    for name, value in arguments(step):
        if not _is(value, hints[name]):
            raise ScheduleError(f"{step.method} takes {_said(hints[name])} as its {name}, not {repr(value)[:80]}")


def kinds(step: Step) -> dict[str, Any]:
    """The types of the arguments of a primitive, by name."""
    return _hints(cast("Hashable", type(step)))


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def _is(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return len(value) == len(kinds) and all(map(_is, value, kinds))
    if hint is Name:
        hint = str
    return isinstance(value, hint) and (hint is not int or not isinstance(value, bool))


def _said(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_said(each) for each in inner if each not in (Symbol, Sampled))
    if origin is tuple:
        return f"a sequence of {_said(inner[0])}" if inner[1:] == (...,) else f"({', '.join(map(_said, inner))})"
    return _WORDS[hint]


def defaults(step: Step) -> dict[str, object]:
    """What the arguments are that need not be given."""
    return {field.name: field.default for field in fields(cast("Any", step)) if field.default is not MISSING}
