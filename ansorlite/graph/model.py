"""A model ready to be tuned: its graph, cut into groups, and the distinct tasks that these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ansorlite import lazy
from ansorlite.errors import ArgumentError
from ansorlite.graph.describe import Value
from ansorlite.graph.fusion import FusionGroup, task_of, use_of
from ansorlite.graph.graph import Graph
from ansorlite.graph.precision import check_precision
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.visible import visible

if TYPE_CHECKING:
    from ansorlite.graph import cutting
else:
    # A model that comes from the cache is cut already, and does without the passes.
    cutting = lazy.module("ansorlite.graph.cutting")


@dataclass(frozen=True, eq=False, repr=False)
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
    groups: tuple[FusionGroup, ...]
    assignments: tuple[int, ...]
    tasks: tuple[tuple[Task, int], ...]
    target: Target

    @staticmethod
    def of(graph: Graph, target: str | Target = "llvm", *, blocked: bool = True, precision: str = "float32") -> Model:
        """Optimise ``graph``, fuse it into groups, and find the tasks that are equal.

        Args:
            blocked: whether convolutions may keep as many channels side by side as a vector of ``target`` has lanes
                (:func:`ansorlite.graph.passes.block_channels.block_channels`).
            precision: what products of float32 multiply: ``"float32"``, or ``"bfloat16"``, to which they round their operands
                (:func:`ansorlite.graph.passes.lower_products.lower_products`).

        Raises:
            ArgumentError: ``graph`` is none, or another precision.
            TargetError: an unknown target.
        """
        if not isinstance(graph, Graph):
            raise ArgumentError(f"a model is made of a graph, not of {graph!r}; al.from_onnx(...) makes one of a file")
        check_precision(precision)
        machine = resolve(target)
        optimized, groups = cutting.cut(graph, machine, blocked, precision)
        # Groups of one use are one task; so are those of equal expressions, which to build takes longer.
        known: dict[Hashable, Task] = {}
        uses = [use_of(optimized, group) for group in groups]
        for use, group in zip(uses, groups, strict=True):
            if use not in known:
                known[use] = task_of(optimized, group, machine)
        keys = [known[use].key for use in uses]
        counts = Counter(keys)
        positions = {key: position for position, key in enumerate(counts)}
        first = {task.key: task for task in reversed(known.values())}
        tasks = tuple((first[key], count) for key, count in counts.items())
        return Model(optimized, groups, tuple(positions[key] for key in keys), tasks, machine)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(f"{name} {v}" for name, v in ends.items()) for ends in (self.inputs, self.outputs))
        parts = f"{len(self.groups)} kernels of {len(self.tasks)} tasks"
        return visible(f"Model({inputs} -> {outputs}; {parts}, {self.target.key!r})")

    @property
    def inputs(self) -> Mapping[str, Value]:
        """Input name → shape and dtype."""
        return self.graph.inputs

    @cached_property
    def outputs(self) -> Mapping[str, Value]:
        """Output name → shape and dtype."""
        return {public: self.graph.values[name] for public, name in self.graph.outputs.items()}
