"""The native segments of a model while they are being written, and the host steps between them.

Segment ``k`` runs before the host steps of stage ``k``, and those before segment ``k + 1``. A node goes into the earliest
segment that comes after all it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import TypeProto

from ansorlite.frontends.onnx.reference import Datum, tensor_type, type_of, value_of
from ansorlite.graph.builder import GraphBuilder
from ansorlite.graph.constants import splat
from ansorlite.graph.describe import Value
from ansorlite.graph.graph import Graph
from ansorlite.graph.hybrid import HostStep
from ansorlite.graph.passes.cleanup import eliminate_dead_nodes
from ansorlite.te import dtypes


@dataclass(eq=False)
class Slot:
    """A value of the model.

    Attributes:
        name: what it is called between steps.
        type: its ONNX type, as far as known.
        stage: the first segment that may read it.
        value: shape and dtype; ``None`` for what only host steps can read.
        datum: what it is, if that is known now.
        depends: the model's inputs that it depends on.
        of_sizes: whether it follows from sizes of what the model is given.
        places: segment → what it is called there.
    """

    name: str
    type: TypeProto
    stage: int = 0
    value: Value | None = None
    datum: Datum = None
    depends: frozenset[str] = frozenset()
    of_sizes: bool = False
    places: dict[int, str] = field(default_factory=dict)

    @staticmethod
    def constant(name: str, datum: Datum, of_sizes: bool = False) -> Slot:
        if isinstance(datum, np.ndarray) and datum.dtype.name in dtypes.NUMPY:
            value = Value(datum.shape, datum.dtype.name)
            return Slot(name, tensor_type(value), value=value, datum=datum, of_sizes=of_sizes)
        kind = type_of(datum)
        return Slot(name, kind, value=value_of(kind), datum=datum, of_sizes=of_sizes)

    @property
    def known(self) -> bool:
        return self.datum is not None

    @property
    def empty(self) -> bool:
        """Whether it has no elements, which makes it known."""
        return self.value is not None and 0 in self.value.shape


@dataclass(frozen=True, eq=False)
class Imported:
    """A model, or a body of control flow, imported.

    Attributes:
        graph: all of it, if all of it is native.
        steps: else native segments and host steps, in running order.
        inputs, outputs: name → value.
    """

    graph: Graph | None
    steps: Sequence[Graph | HostNode]
    inputs: Mapping[str, Slot]
    outputs: Mapping[str, Slot]


@dataclass(frozen=True, eq=False)
class HostNode:
    """A node that runs in Python.

    Attributes:
        step: what it does, without the models that it calls.
        bodies: these models.
    """

    step: HostStep
    bodies: tuple[Imported, ...] = ()


def empty(name: str, value: Value) -> Slot:
    """A tensor without elements."""
    return Slot.constant(name, splat(np.zeros((), dtypes.NUMPY[value.dtype])[()], value.shape))


class Segments:
    """Collects nodes and host steps."""

    def __init__(self) -> None:
        self._builders: dict[int, GraphBuilder] = {}
        self._exports: dict[int, dict[str, str]] = {}
        self._hosts: dict[int, list[HostNode]] = {}

    def builder(self, stage: int) -> GraphBuilder:
        if stage not in self._builders:
            self._builders[stage] = GraphBuilder()
            self._exports[stage] = {}
        return self._builders[stage]

    @property
    def has_host_steps(self) -> bool:
        """Whether there are some so far, needed or not."""
        return bool(self._hosts)

    @property
    def size(self) -> int:
        """How many nodes there are so far."""
        return sum(builder.size for builder in self._builders.values()) + sum(map(len, self._hosts.values()))

    def bring(self, slot: Slot, stage: int) -> str:
        """What ``slot``, which has a shape and dtype, is called in a segment; it is handed there if it comes from elsewhere."""
        if stage not in slot.places:
            builder = self.builder(stage)
            if slot.known:
                slot.places[stage] = builder.constant(slot.datum, slot.name)
            else:
                assert slot.value is not None
                self.export(slot)
                slot.places[stage] = builder.input(slot.name, slot.value)
        return slot.places[stage]

    def computed(self, name: str, stage: int, place: str, depends: frozenset[str], of_sizes: bool = False) -> Slot:
        """What a segment computes."""
        builder = self.builder(stage)
        array = builder.array(place)
        value = builder.value(place)
        if array is not None:
            return Slot(name, tensor_type(value), 0, value, array, of_sizes=of_sizes, places={stage: place})
        return Slot(name, tensor_type(value), stage, value, None, depends, of_sizes, {stage: place})

    def export(self, slot: Slot) -> str:
        """Make a value visible to later steps; returns its name there."""
        if slot.stage in slot.places and not slot.known:
            self._exports[slot.stage][slot.name] = slot.places[slot.stage]
        return slot.name

    def host(self, stage: int, node: HostNode) -> None:
        self._hosts.setdefault(stage, []).append(node)

    def graph(self, inputs: Mapping[str, Slot], outputs: Mapping[str, Slot]) -> Graph:
        """All of it as one graph, if there are no host steps. It has all of ``inputs``, read or not, in this order."""
        for slot in inputs.values():
            self.bring(slot, 0)
        graph = self.builder(0).finish({name: self.bring(slot, 0) for name, slot in outputs.items()})
        return replace(graph, inputs={name: graph.inputs[name] for name in inputs})

    def steps(self, outputs: Iterable[str]) -> Sequence[Graph | HostNode]:
        """The segments and host steps that ``outputs`` depend on, in running order."""
        needed = set(outputs)
        found: list[Graph | HostNode] = []
        for stage in sorted({*self._builders, *self._hosts}, reverse=True):
            for node in reversed(self._hosts.get(stage, ())):
                if any(name in needed for name, _ in node.step.outputs):
                    needed.update(node.step.inputs)
                    found.append(node)
            made = {name: place for name, place in self._exports.get(stage, {}).items() if name in needed}
            builder = self.builder(stage)
            # What a segment only reads is there without it.
            exports = {name: place for name, place in made.items() if name != place or not builder.is_input(place)}
            if exports:
                graph = eliminate_dead_nodes(builder.finish(exports))
                read = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs.values())
                graph = replace(graph, inputs={name: value for name, value in graph.inputs.items() if name in read})
                needed.update(graph.inputs)
                found.append(graph)
        return found[::-1]
