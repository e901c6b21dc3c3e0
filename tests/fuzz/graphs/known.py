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


#: Being mended elsewhere; each goes with its mend.
PENDING: Final[tuple[Refusal, ...]] = (
    Refusal("Pad", "is declared as bool, but is int64", "Pad of bool"),
    Refusal("CenterCropPad", "is declared as bool, but is int64", "Pad of bool"),
    Refusal("ReduceLogSumExp", "float64", "ReduceLogSumExp of integers"),
    Refusal("LayerNormalization", "is declared as float32, but is", "mean and deviation of LayerNormalization are float32"),
    Refusal("GatherElements", "should be the same size", "onnx.reference, behind values of unknown shape, wants large indices"),
    Refusal("MeanVarianceNormalization", "float16 != float32", "onnx.reference, behind values of unknown shape, mixes dtypes"),
)

REFUSALS: Final[tuple[Refusal, ...]] = (
    Refusal("Det", "cannot run: Issues with types", "it runs in Python, and numpy has no determinant of float16 and bfloat16"),
    Refusal("MaxPool", "cannot convert float NaN to integer", "indices are found by onnx.reference, which pads with NaN"),
    Refusal("MaxPool", "is due", "indices are found by onnx.reference, which drops a last window that ONNX counts"),
    *PENDING,
)


def is_known_refusal(model: onnx.ModelProto, sentence: str) -> bool:
    operators = {node.op_type for node in model.graph.node}
    return any(known.operator in operators and known.sentence in sentence for known in REFUSALS)
