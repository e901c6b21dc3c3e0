"""What is known: the valid graphs that ansorlite refuses, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import onnx


@dataclass(frozen=True)
class Refusal:
    """
    Attributes:
        operator: a node of it is in the graph.
        sentence: what the error says, in part.
        reason: why the graph may be refused.
    """

    operator: str
    sentence: str
    reason: str


REFUSALS: Final[tuple[Refusal, ...]] = ()


def is_known_refusal(model: onnx.ModelProto, sentence: str) -> bool:
    operators = {node.op_type for node in model.graph.node}
    return any(known.operator in operators and known.sentence in sentence for known in REFUSALS)
