"""Where names have a meaning, and one node that is to be imported there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import TypeProto

from ansorlite.frontends.onnx.attributes import title
from ansorlite.frontends.onnx.reference import free_names
from ansorlite.frontends.onnx.segments import Slot


@dataclass(frozen=True, eq=False)
class NameScope:
    """The model, the body of an operator that is defined by others, or a subgraph.

    Attributes:
        slots: ONNX value name → value.
        opsets: domain → version.
        prefix: what makes names of values in this scope unlike those in others.
    """

    slots: dict[str, Slot]
    opsets: Mapping[str, int]
    prefix: str


@dataclass(frozen=True, eq=False)
class Attempt:
    """One node to be imported.

    Attributes:
        inputs: one for each input; ``None`` where an optional one is left out.
        captured: all that it reads, what its subgraphs read from around them too.
        wanted: for each result, whether anything reads it.
    """

    proto: onnx.NodeProto
    inputs: Sequence[Slot | None]
    captured: Sequence[Slot]
    wanted: Sequence[bool]
    scope: NameScope

    @property
    def title(self) -> str:
        """How to name the node to a person."""
        return title(self.proto)

    @property
    def slots(self) -> Mapping[str, Slot]:
        return dict(zip(free_names(self.proto), self.captured, strict=True))

    @property
    def opset(self) -> int:
        return self.scope.opsets[self.proto.domain]

    @property
    def depends(self) -> frozenset[str]:
        return frozenset().union(*(slot.depends for slot in self.captured))

    @property
    def names(self) -> list[str]:
        """What the results are called between steps."""
        return [self.scope.prefix + name for name in self.proto.output if name]

    def named(self, slots: Sequence[Slot]) -> list[Slot]:
        """One slot a result from one a named result; what stands for the others is never read."""
        rest = iter(slots)
        return [next(rest) if name else Slot("", TypeProto()) for name in self.proto.output]
