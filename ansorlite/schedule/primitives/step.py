"""What a primitive is."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, ClassVar, TypeAlias, cast

from ansorlite.schedule.refs import LoopRef, StageRef
from ansorlite.schedule.structure import Structure

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


def arguments(step: Step) -> list[tuple[str, object]]:
    """The arguments of a primitive, by name."""
    return [(field.name, getattr(step, field.name)) for field in fields(cast("Any", step))]


def defaults(step: Step) -> dict[str, object]:
    """What the arguments are that need not be given."""
    return {field.name: field.default for field in fields(cast("Any", step)) if field.default is not MISSING}
