"""Bodies of control flow as models of their own, and nodes of control flow as functions that call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx
from onnx import TypeProto

from ansorlite.frontends.onnx.imports import Imports
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.reference import free_names, tensor_type
from ansorlite.frontends.onnx.scope import Attempt
from ansorlite.frontends.onnx.segments import Imported, Slot
from ansorlite.graph.describe import Value
from ansorlite.graph.hybrid import Datum

#: A compiled body: its inputs, by name → its outputs, by name.
Compiled: TypeAlias = Callable[[Mapping[str, Datum]], Mapping[str, Datum]]


@dataclass(frozen=True, eq=False)
class Control:
    """A node of control flow as a function that calls compiled bodies.

    Attributes:
        reason: why it is not written out.
        reads: the values that it is a function of.
        run: their data, in this order, and the compiled bodies → the results.
        results: the named results that it computes, in order, each with its type, as far as that is known beforehand.
        passed: those that are values of the model around it.
        bodies: what it calls.
        turns: how often it calls them, as far as that is known beforehand.
    """

    reason: str
    reads: tuple[Slot, ...]
    run: Callable[..., list[Datum]]
    results: Mapping[str, TypeProto]
    passed: Mapping[str, Slot]
    bodies: tuple[Imported, ...]
    turns: int = 1


class Reads:
    """The values that a node reads while the model runs, each once."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}

    def __call__(self, slot: Slot | None) -> Source:
        """Where the datum of ``slot`` will be; ``None`` is none."""
        if slot is None or slot.known:
            return Source(None, None if slot is None else slot.datum)
        self._slots.setdefault(slot.name, slot)
        return Source(list(self._slots).index(slot.name))

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(self._slots.values())


@dataclass(frozen=True, eq=False)
class Source:
    """A datum: at a place of what the node is given, or known."""

    place: int | None
    known: Datum = None

    def __call__(self, data: Sequence[Datum]) -> Datum:
        return self.known if self.place is None else data[self.place]


@dataclass(frozen=True, eq=False)
class Body:
    """A body.

    Attributes:
        model: the body, imported.
        fixed: the inputs that are the same whenever it runs.
    """

    model: Imported
    fixed: Mapping[str, Source]

    @staticmethod
    def of(
        graph: onnx.GraphProto,
        variables: Mapping[str, Value],
        fixed: Mapping[str, Slot],
        wanted: Sequence[str],
        attempt: Attempt,
        imports: Imports,
        reads: Reads,
    ) -> Body:
        """A subgraph of ``attempt``.

        Args:
            variables: its inputs that differ each time.
            fixed: those that do not; what it takes from around it is found here.
            wanted: those of its results that are read.
        """
        used = {name for node in graph.node for name in free_names(node)} | set(wanted)
        around = {**attempt.slots, **fixed}
        same = {name: slot for name, slot in around.items() if name in used and name not in variables}
        if any(not slot.known and slot.value is None for slot in same.values()):
            raise UnsupportedError("a value that it reads is no tensor of known shape with a dtype that has arithmetic")
        other = {name: Slot(name, tensor_type(value), value=value) for name, value in variables.items() if name in used}
        model = imports.body(graph, same | other, attempt.scope.opsets, wanted)
        return Body(model, {name: reads(slot) for name, slot in same.items() if not slot.known})

    def __call__(self, run: Compiled, fixed: Mapping[str, Datum], variables: Mapping[str, Datum]) -> Mapping[str, Datum]:
        """Its results."""
        return run({name: variables[name] if name in variables else fixed[name] for name in self.model.inputs})

    def given(self, data: Sequence[Datum]) -> dict[str, Datum]:
        """The inputs that are the same each time."""
        return {name: source(data) for name, source in self.fixed.items()}


def type_of(values: Sequence[Value | None]) -> TypeProto:
    """What is known of a value that is one of these."""
    first = values[0]
    if first is None or any(value is None or value.dtype != first.dtype for value in values):
        return TypeProto()
    if all(value == first for value in values):
        return tensor_type(first)
    kind = TypeProto()
    kind.tensor_type.elem_type = tensor_type(first).tensor_type.elem_type
    return kind
