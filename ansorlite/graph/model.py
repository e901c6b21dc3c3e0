"""A model ready to be tuned: its graph, cut into groups, and the distinct tasks that these are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ansorlite.graph.chunks import run_in_chunks
from ansorlite.graph.describe import Value
from ansorlite.graph.fusion import Group, fuse, task_of
from ansorlite.graph.graph import Graph
from ansorlite.graph.passes import optimize
from ansorlite.graph.passes.block_channels import block_channels
from ansorlite.graph.producers import join_producers
from ansorlite.target import Target, resolve
from ansorlite.task import Task


@dataclass(frozen=True, eq=False)
class Model:
    """A model on one target. Make one with :meth:`of`, or with ``ansorlite.from_onnx``.

    Attributes:
        graph: the model after all passes.
        groups: what is computed together, in running order.
        assignments: for each group, its position in ``tasks``.
        tasks: the distinct tasks, in order of first use, each with the number of groups that it computes.
        target: the machine.
    """

    graph: Graph
    groups: tuple[Group, ...]
    assignments: tuple[int, ...]
    tasks: tuple[tuple[Task, int], ...]
    target: Target

    @staticmethod
    def of(graph: Graph, target: str | Target = "llvm", *, blocked: bool = True) -> Model:
        """Optimise ``graph``, fuse it into groups, and find the tasks that are equal.

        Args:
            blocked: whether convolutions may keep as many channels side by side as a vector of ``target`` has lanes
                (:func:`ansorlite.graph.passes.block_channels.block_channels`).

        Raises:
            TargetError: an unknown target.
        """
        machine = resolve(target)
        optimized = run_in_chunks(optimize(graph), machine)
        if blocked:
            optimized = block_channels(optimized, machine.lanes("float32"))
        groups = join_producers(optimized, fuse(optimized), machine)
        distinct: dict[str, tuple[Task, int]] = {}
        keys = []
        for group in groups:
            task = task_of(optimized, group, machine)
            known, count = distinct.get(task.key, (task, 0))
            distinct[task.key] = (known, count + 1)
            keys.append(task.key)
        positions = {key: position for position, key in enumerate(distinct)}
        return Model(optimized, groups, tuple(positions[key] for key in keys), tuple(distinct.values()), machine)

    @property
    def inputs(self) -> Mapping[str, Value]:
        """Input name → shape and dtype."""
        return self.graph.inputs

    @cached_property
    def outputs(self) -> Mapping[str, Value]:
        """Output name → shape and dtype."""
        return {public: self.graph.values[name] for public, name in self.graph.outputs.items()}
