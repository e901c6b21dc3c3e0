"""Traces of equal computations: a trace in the names of one says the same of another, in the other's names.

A trace names stages and loops, while a workload key, under which records are kept, is equal for equal computations whatever their
names. The two computations are taken through the primitives side by side: what is at one position in both is one thing, by
two names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from ansorlite.errors import ScheduleError
from ansorlite.schedule.primitives import Step, check_arguments
from ansorlite.schedule.primitives.step import arguments, kinds
from ansorlite.schedule.refs import LoopRef, Name, StageRef
from ansorlite.schedule.schedule import Schedule, Stage
from ansorlite.schedule.trace_reader import read_into
from ansorlite.te.dag import ComputeDAG


def renamed(text: str, source: ComputeDAG, target: ComputeDAG) -> str:
    """The trace of one program of ``source``, in the names of ``target``, which must be equal but for names.

    Raises:
        ScheduleError: the text is no trace of a program of ``source``.
    """
    if source.names == target.names:
        return text
    twin = Schedule(target)
    read_into(_Mirrored(source, twin), text, decided=True)
    return str(twin.trace)


class _Mirrored(Schedule):
    """A schedule that does to its twin what is done to it."""

    def __init__(self, dag: ComputeDAG, twin: Schedule) -> None:
        super().__init__(dag)
        self._twin = twin

    def apply(self, step: Step) -> tuple[Stage | LoopRef, ...]:
        check_arguments(step)
        names = _Names(self, self._twin)
        same = cast("Step", replace(cast("Any", step), **{name: names.of(value, kind) for name, value, kind in _typed(step)}))
        results = super().apply(step)
        self._twin.apply(same)
        return results


def _typed(step: Step) -> Iterable[tuple[str, object, Any]]:
    expected = kinds(step)
    return ((name, value, expected[name]) for name, value in arguments(step))


class _Names:
    """What the stages and loops of one schedule are called in its twin."""

    def __init__(self, schedule: Schedule, twin: Schedule) -> None:
        ours, theirs = schedule.structure, twin.structure
        self.target = twin
        self.tensors = dict(zip((t.name for t in ours.dag.tensors), (t.name for t in theirs.dag.tensors), strict=True))
        self.loops: dict[LoopRef, str] = {}
        for name in (tensor.name for tensor in ours.dag.computes):
            said, other = ours.loops(name), theirs.loops(self.tensors[name])
            self.tensors |= {a.name: b.name for a, b in zip(said.copies, other.copies, strict=True)}
            for mine, its in ((said.axes, other.axes), (said.loops, other.loops)):
                self.loops |= {LoopRef(name, a): b for a, b in zip(mine, its, strict=True)}

    def of(self, value: object, kind: Any) -> object:
        """An argument, of the kind that the primitive takes."""
        match value:
            case StageRef(name):
                return StageRef(self.tensor(name))
            case LoopRef(stage, _):
                if value not in self.loops:
                    raise ScheduleError(f"there is no loop {value} any more")
                return LoopRef(self.tensor(stage), self.loops[value])
            case str() if kind is Name:
                return self.tensor(value)
            case tuple():
                return tuple(self.of(item, inner) for item, inner in zip(value, _inner(kind, len(value)), strict=True))
        return value

    def tensor(self, name: str) -> str:
        """The twin's name of a tensor; of one that is about to be made, what the twin's own primitive would call it."""
        if name not in self.tensors:
            known = max((each for each in self.tensors if name.startswith(each)), key=len, default="")
            self.tensors[name] = self.target.free(self.tensors.get(known, "") + name[len(known) :])
        return self.tensors[name]


def _inner(kind: Any, count: int) -> tuple[Any, ...]:
    """The kinds of the members of a tuple."""
    inner: tuple[Any, ...] = getattr(kind, "__args__", ())
    return inner[:1] * count if inner[1:] == (...,) else inner
