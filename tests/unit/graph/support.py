"""Graphs for tests, and what they mean node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ansorlite import te
from ansorlite.graph.graph import Graph
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate


@dataclass(frozen=True)
class Meaning:
    """A task's numpy meaning in the place of its kernel."""

    task: Task

    def bind(self, *arrays: np.ndarray) -> Callable[[], None]:
        inputs, output = arrays[:-1], arrays[-1]
        return lambda: np.copyto(output, evaluate(self.task.dag, inputs)[0])


def node_by_node(graph: Graph, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of ``graph``, every node on its own, nothing shared or in place."""
    known = {**graph.constants, **inputs}
    for node in graph.nodes:
        arrays = [known[name] for name in node.inputs]
        tensors = [te.placeholder(array.shape, array.dtype.name) for array in arrays]
        dag = ComputeDAG.of([*tensors, node.operator(*tensors, **dict(node.attributes))])
        (known[node.output],) = evaluate(dag, arrays)
    return {public: known[name] for public, name in graph.outputs.items()}


def operators(graph: Graph) -> list[str]:
    return [node.operator.__name__ for node in graph.nodes]
