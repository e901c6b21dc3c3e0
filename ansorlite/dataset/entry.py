"""The programs of one task on one device, with all views of them that cost models look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model import Group
from ansorlite.cost_model.views import View, seen
from ansorlite.errors import ScheduleError
from ansorlite.features.loop_tree import Kind
from ansorlite.features.programs import Programs
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Programs of one shape.

    Attributes:
        traces: of each.
        latencies: ``(n,)`` float64 seconds; ``inf`` where one failed. Of one that was stopped for being slow, a lower bound.
        views: of each view, ``(n, items, numbers)`` float32.
    """

    traces: tuple[str, ...]
    latencies: Floats
    views: Mapping[View, NDArray[np.float32]]

    def take(self, at: NDArray[np.int64]) -> Part:
        """Those at positions ``at``."""
        views = {view: array[at] for view, array in self.views.items()}
        return Part(tuple(self.traces[each] for each in at.tolist()), self.latencies[at], views)


@dataclass(frozen=True, eq=False)
class Entry:
    """What is known of one task on one device.

    Attributes:
        task: the task.
        device: the key of its target, and the name of the machine if that is not the one that wrote the record.
        origin: where the task is from: of a network or a suite of benchmarks, the name; or empty.
        parts: its programs, each once; there is at least one.
    """

    task: Task
    device: str
    origin: str
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return sum(len(part.traces) for part in self.parts)

    @cached_property
    def latencies(self) -> Floats:
        """``(n,)``, part by part."""
        return np.concatenate([part.latencies for part in self.parts])

    def groups(self, view: View) -> list[Group]:
        """As a cost model takes them."""
        return [Group(part.views[view].astype(np.float64), part.latencies, self.task.key, self.device) for part in self.parts]

    def take(self, chosen: NDArray[np.bool_]) -> Entry | None:
        """The chosen programs, of ``(n,)``; ``None`` if there are none."""
        ends = np.cumsum([len(part.traces) for part in self.parts])[:-1]
        parts = [part.take(np.flatnonzero(own)) for part, own in zip(self.parts, np.split(chosen, ends), strict=True)]
        kept = tuple(part for part in parts if part.traces)
        return replace(self, parts=kept) if kept else None


def parts_of(task: Task, sketches: Sequence[Sketch], candidates: Sequence[Candidate], latencies: Floats) -> tuple[Part, ...]:
    """Programs of ``task``, with all views. What makes no program of the task today is left out.

    Args:
        sketches: a program that one of them has is seen as one of its; another is seen by itself.
        latencies: ``(n,)`` seconds.
    """
    shapes: dict[tuple[object, ...], list[Part]] = {}
    for at, programs in _programs(task, sketches, candidates):
        views = {view: seen(view, programs).astype(np.float32) for view in View}
        traces = np.array([candidates[each].trace for each in at], object)
        # Loops hang together differently where rows choose what is computed where.
        _, tree = np.unique(views[View.LOOPS][:, :, : 1 + len(Kind)], axis=0, return_inverse=True)
        for number in range(int(tree.max()) + 1):
            own = np.flatnonzero(tree.reshape(-1) == number)
            part = Part(tuple(traces[own]), latencies[np.array(at)[own]], {view: array[own] for view, array in views.items()})
            shapes.setdefault(_shape(part), []).append(part)
    return tuple(_joined(same) for same in shapes.values())


def _programs(task: Task, sketches: Sequence[Sketch], candidates: Sequence[Candidate]) -> Iterator[tuple[list[int], Programs]]:
    """Positions among ``candidates``, and their programs, sketch by sketch."""
    left = dict(enumerate(candidates))
    for sketch in sketches:
        found = {at: row for at, candidate in left.items() if (row := sketch.row_of(candidate)) is not None}
        left = {at: candidate for at, candidate in left.items() if at not in found}
        if found:
            yield list(found), Programs(sketch, np.array(list(found.values()), np.int64).reshape(len(found), -1))
    for at, candidate in left.items():
        try:
            sketch = sketch_of(task, candidate)
        except ScheduleError:
            continue
        yield [at], Programs(sketch, np.zeros((1, 0), np.int64))


def _shape(part: Part) -> tuple[object, ...]:
    tree = part.views[View.LOOPS][0, :, : 1 + len(Kind)].tobytes()
    return tree, *(part.views[view].shape[1:] for view in View)


def _joined(parts: Sequence[Part]) -> Part:
    return Part(
        tuple(trace for part in parts for trace in part.traces),
        np.concatenate([part.latencies for part in parts]),
        {view: np.concatenate([part.views[view] for part in parts]) for view in View},
    )
