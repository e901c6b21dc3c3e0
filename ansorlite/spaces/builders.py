"""Where the sketches of a task come from: the derivation rules, or schedule functions and builders of the user's own."""

from __future__ import annotations

import ctypes
import threading
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from ansorlite.errors import ArgumentError, ScheduleError
from ansorlite.schedule.samples import Fork
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.state import Rule
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive, limited
from ansorlite.task import Task

#: A function that branches on samples makes at most so many structures: each is searched by itself.
MOST_STRUCTURES: Final = 64
#: Seconds after which a function counts as one that never returns.
PATIENCE: Final = 30.0
#: Of what an error of the user's says, so many characters.
_LONGEST: Final = 300
_HOUSE: Final = Path(__file__).parents[1]

#: Does to a schedule what is to be done; what it samples is searched.
ScheduleFunction: TypeAlias = Callable[[Schedule], object]


@runtime_checkable
class SpaceBuilder(Protocol):
    """Makes the sketches of a task."""

    def spaces(self, task: Task) -> Sequence[Sketch]:
        """The sketches, the same ones in the same order every time."""
        ...


#: What ``space=`` takes.
Given: TypeAlias = ScheduleFunction | Sequence[ScheduleFunction] | Sequence[Rule] | SpaceBuilder


@dataclass(frozen=True)
class Derived:
    """The sketches that derivation rules make.

    Attributes:
        rules: asked in order; those of the task's target if ``None``.
    """

    rules: tuple[Rule, ...] | None = None

    def spaces(self, task: Task) -> tuple[Sketch, ...]:
        return derive(task, self.rules)


@dataclass(frozen=True)
class Functions:
    """The sketches that schedule functions make: one of each, or where it branches on what it samples one for each choice."""

    functions: tuple[ScheduleFunction, ...]

    def spaces(self, task: Task) -> tuple[Sketch, ...]:
        """
        Raises:
            ScheduleError: a function fails, never returns, is not the same when it is run again, or what it makes is no schedule.
        """
        found = [sketch for function in self.functions for sketch in _sketches(function, task)]
        return tuple({sketch.signature: sketch for sketch in found}.values())


def builder_of(space: Given | None) -> SpaceBuilder:
    """What makes sketches of what a user gave.

    Raises:
        ArgumentError: it is nothing that does.
    """
    if space is None:
        return Derived()
    if isinstance(space, SpaceBuilder):
        return space
    if isinstance(space, Sequence) and space and all(isinstance(rule, Rule) for rule in space):
        return Derived(tuple(rule for rule in space if isinstance(rule, Rule)))
    several: Sequence[object] = space if isinstance(space, Sequence) and not isinstance(space, str) else (space,)
    functions: tuple[ScheduleFunction, ...] = tuple(cast("ScheduleFunction", each) for each in several if callable(each))
    if not functions or len(functions) < len(several):
        raise ArgumentError(
            f"{space!r} is no space: give a function that schedules, several of them, derivation rules, or an object with the "
            f"method spaces(task)"
        )
    return Functions(functions)


def sketches_of(task: Task, space: SpaceBuilder) -> tuple[Sketch, ...]:
    """The sketches of a task, one at least, each with programs that its platform runs.

    Raises:
        ScheduleError: there are none.
    """
    made = tuple(space.spaces(task))
    if not made or not all(isinstance(sketch, Sketch) for sketch in made):
        raise ScheduleError(
            f"the space made {len(made)} sketches of the task {task.key[:80]!r}, or something else; it must make one"
        )
    sketches = tuple(map(limited, made))
    problems = [_problem(sketch) for sketch in sketches]
    found = tuple(sketch for sketch, problem in zip(sketches, problems, strict=True) if problem is None)
    if not found:
        raise ScheduleError(f"no sketch of the task {task.key[:80]!r} has a program for {task.target.key}: {problems[0]}")
    return found


def _problem(sketch: Sketch) -> str | None:
    """Why a sketch has no programs; ``None`` where it has some."""
    try:
        TileSpace(sketch).sample(1, np.random.default_rng(0))
    except ScheduleError as error:
        return str(error)
    return None


def _sketches(function: ScheduleFunction, task: Task) -> list[Sketch]:
    name = getattr(function, "__name__", repr(function))
    work: list[dict[str, int]] = [{}]
    found: list[Sketch] = []
    while work:
        forced = work.pop(0)
        try:
            schedule = _run(function, name, task, forced)
            again = _run(function, name, task, forced)
        except Fork as fork:
            if len(found) + len(work) + fork.hole.size > MOST_STRUCTURES:
                raise ScheduleError(
                    f"the schedule function {name} makes more than {MOST_STRUCTURES} structures: it needs to know what is chosen "
                    f"for {fork.hole.name}, of {fork.hole.size:,} choices; compute with samples instead of branching on them"
                ) from None
            work[:0] = [{**forced, fork.hole.name: choice} for choice in range(fork.hole.size)]
            continue
        if str(schedule.trace) != str(again.trace):
            raise ScheduleError(
                f"the schedule function {name} does not do the same when it is run again; draw nothing at random but by s.sample"
            )
        found.append(_checked(limited(Sketch(schedule.structure, schedule.trace, task.target)), name))
    return found


def _checked(sketch: Sketch, name: str) -> Sketch:
    problem = _problem(sketch)
    if problem is not None:
        raise ScheduleError(f"the schedule function {name} makes no program: {problem}")
    return sketch


def _run(function: ScheduleFunction, name: str, task: Task, forced: dict[str, int]) -> Schedule:
    """The schedule that a function makes, in a thread of its own that is left alone if it never returns.

    Raises:
        Fork: it needs to know what is chosen for a hole.
        ScheduleError: it fails.
    """
    schedule = Schedule(task.dag, task.target, forced=forced)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made = function(schedule)
            if isinstance(made, Coroutine | Generator | AsyncGenerator):
                if not isinstance(made, AsyncGenerator):
                    made.close()
                raise ScheduleError(f"it makes a {type(made).__name__}, which nobody runs; write it without yield and async")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name=f"schedule function {name}", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        # Ends what loops in Python; what waits in C is a daemon.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        raise ScheduleError(f"the schedule function {name} has not returned after {PATIENCE:.0f} s")
    if not failed:
        return schedule
    (error,) = failed
    if isinstance(error, Fork):
        raise error
    if isinstance(error, ScheduleError):
        raise ScheduleError(f"the schedule function {name}: {error}") from error
    raise ScheduleError(f"the schedule function {name} fails with {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    """What it is, and the last line of the user's own that it came from."""
    said = " ".join("".join(traceback.format_exception_only(error)).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(_HOUSE)] or frames
    return f"{said[:_LONGEST]} (line {own[-1].lineno} of {own[-1].filename})"
