"""The memory plan: where every value of a model lives while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorlite.alignment import aligned
from ansorlite.graph.fusion import FusionGroup
from ansorlite.graph.graph import Graph
from ansorlite.graph.movement import part_offsets, view_offset


@dataclass(frozen=True)
class Place:
    """Where a value lies.

    Attributes:
        root: the value whose buffer it is in; itself if it has one of its own.
        offset: bytes from the start of that buffer.
    """

    root: str
    offset: int


@dataclass(frozen=True)
class ConcatCopy:
    """A part of a concatenation that must be moved to its place, as it also lies elsewhere."""

    source: str
    target: str
    offset: int


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """Buffers of a model's values, in one arena where they are not given out; reused as soon as nothing reads them any more.

    Attributes:
        places: every value that a node computes → where it lies; roots may be inputs and constants of the model.
        steps: what to do, in order.
        results: root → the model's output that it is: computed right in the caller's array.
        offsets: the other roots that the model computes → bytes from the start of the arena.
        peak: bytes of the arena.
        total: bytes that the roots in the arena would take without reuse.
    """

    places: Mapping[str, Place]
    steps: tuple[FusionGroup | ConcatCopy, ...]
    results: Mapping[str, str]
    offsets: Mapping[str, int]
    peak: int
    total: int


def plan_memory(graph: Graph, groups: Sequence[FusionGroup]) -> MemoryPlan:
    """Lay out the values of ``graph``, whose kernels run in the order of ``groups``.

    Reshapes and contiguous slices lie within their input; the parts of a contiguous concatenation are computed right in
    their place, unless they are needed in two places or were given from outside: then they are copied.
    """
    parents, copies = _parents(graph)
    places = {name: _place(name, parents) for name in graph.values}
    steps = _steps(graph, groups, copies)
    results = _results(graph, places)
    intervals = {root: life for root, life in _intervals(graph, steps, places).items() if root not in results}
    sizes = {root: graph.values[root].nbytes for root in intervals}
    offsets = _packed(intervals, sizes)
    peak = max((offsets[root] + sizes[root] for root in offsets), default=0)
    computed = {node.output: places[node.output] for node in graph.nodes}
    return MemoryPlan(computed, steps, results, offsets, peak, sum(sizes.values()))


def _place(name: str, parents: Mapping[str, Place]) -> Place:
    offset = 0
    while name in parents:
        offset += parents[name].offset
        name = parents[name].root
    return Place(name, offset)


def _parents(graph: Graph) -> tuple[dict[str, Place], dict[str, list[ConcatCopy]]]:
    """For values that lie within another, which one; and for each concatenation, the parts that must be copied."""
    parents: dict[str, Place] = {}
    copies: dict[str, list[ConcatCopy]] = {}
    computed = {node.output for node in graph.nodes}
    for node in graph.nodes:
        offset, parts = view_offset(graph, node), part_offsets(graph, node)
        if offset is not None:
            parents[node.output] = Place(node.inputs[0], offset)
        for name, at in zip(node.inputs, parts or (), strict=bool(parts)):
            own = _place(name, parents)
            whole = own.offset == 0 and graph.values[own.root].nbytes == graph.values[name].nbytes
            if whole and own.root in computed and own.root != node.output:
                parents[own.root] = Place(node.output, at)
            else:
                copies.setdefault(node.output, []).append(ConcatCopy(name, node.output, at))
    return parents, copies


def _steps(
    graph: Graph, groups: Sequence[FusionGroup], copies: Mapping[str, list[ConcatCopy]]
) -> tuple[FusionGroup | ConcatCopy, ...]:
    """Each kernel at its last node's turn, each copy at its concatenation's."""
    ends = {group.output: group for group in groups}
    steps: list[FusionGroup | ConcatCopy] = []
    for node in graph.nodes:
        steps.extend(copies.get(node.output, ()))
        if node.output in ends:
            steps.append(ends[node.output])
    return tuple(steps)


def _results(graph: Graph, places: Mapping[str, Place]) -> dict[str, str]:
    """Roots that the model computes and gives out whole; one that it gives out twice is copied for the second."""
    computed = {node.output for node in graph.nodes}
    results: dict[str, str] = {}
    for public, name in graph.outputs.items():
        root = places[name].root
        if root in computed and graph.values[root].nbytes == graph.values[name].nbytes:
            results.setdefault(root, public)
    return results


def _intervals(
    graph: Graph, steps: Sequence[FusionGroup | ConcatCopy], places: Mapping[str, Place]
) -> dict[str, tuple[int, int]]:
    """Root that the model computes → the first step that writes it and the last that reads it."""
    computed = {node.output for node in graph.nodes}
    intervals: dict[str, tuple[int, int]] = {}

    def touch(name: str, step: int) -> None:
        root = places[name].root
        if root in computed:
            begin, end = intervals.get(root, (step, step))
            intervals[root] = (min(begin, step), max(end, step))

    for number, step in enumerate(steps):
        for name in (step.source, step.target) if isinstance(step, ConcatCopy) else (*step.inputs, step.output):
            touch(name, number)
    for name in graph.outputs.values():
        touch(name, len(steps))
    return intervals


def _packed(intervals: Mapping[str, tuple[int, int]], sizes: Mapping[str, int]) -> dict[str, int]:
    """An arena offset for each buffer so that no two that live at the same time overlap: largest first, lowest gap."""
    offsets: dict[str, int] = {}
    for name in sorted(intervals, key=lambda root: (-sizes[root], intervals[root])):
        begin, end = intervals[name]
        others = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in offsets
            if intervals[other][0] <= end and begin <= intervals[other][1]
        )
        offset = 0
        for start, stop in others:
            if offset + sizes[name] <= start:
                break
            offset = max(offset, aligned(stop))
        offsets[name] = offset
    return offsets
