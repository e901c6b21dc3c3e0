"""What control flow asks of the import that it is a part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import onnx

from ansorlite.frontends.onnx.scope import NameScope
from ansorlite.frontends.onnx.segments import Imported, Slot


class Imports(Protocol):
    """What imports the nodes."""

    def add_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], scope: NameScope) -> None:
        """Import those of ``nodes`` that ``outputs`` depend on."""

    def scope_of(self, graph: onnx.GraphProto, given: Mapping[str, Slot], around: NameScope) -> NameScope:
        """A scope for the nodes of a subgraph, whose inputs are ``given``."""

    @property
    def size(self) -> int:
        """How many nodes there are so far."""

    def need(self, slot: Slot) -> None:
        """Ask for the value of ``slot``, if that can be known beforehand."""

    def is_native(self, graph: onnx.GraphProto) -> bool:
        """Whether every node of a subgraph could be native."""

    def body(
        self, graph: onnx.GraphProto, given: Mapping[str, Slot], opsets: Mapping[str, int], wanted: Sequence[str]
    ) -> Imported:
        """A subgraph as a model of its own, of those of ``given`` that are not known.

        Args:
            given: the values that it reads from outside, each of known shape.
            wanted: the names of those of its results that are read.
        """
