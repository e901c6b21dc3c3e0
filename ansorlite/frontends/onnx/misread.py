"""What ``onnx.reference`` gets wrong: nodes whose meaning is taken from their own converters, or that are refused.

``python -m benchmarks.conformance.audit`` finds them, by comparing with onnxruntime.
"""

from __future__ import annotations

from typing import Final

import onnx

from ansorlite.frontends.onnx.reference import DOMAINS

#: Operators of which the reference ignores inputs or attributes: lengths, clipping, activations.
_MISREAD: Final = frozenset(("GRU", "LSTM", "RNN"))


def is_misread(node: onnx.NodeProto) -> bool:
    """Whether the reference does not know the node's operator, or ignores a part of it."""
    return node.domain not in DOMAINS or (node.domain in DOMAINS[:2] and node.op_type in _MISREAD)
