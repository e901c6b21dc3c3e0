"""Data quantised in each call anew, and products with the weights of recurrent networks: as they are, or quantised."""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.frontends.onnx.node import NodeView
from ansorlite.frontends.onnx.operators.shape import cut
from ansorlite.topi import quantized as topi
from ansorlite.topi.elementwise import add
from ansorlite.topi.matmul import gemm
from ansorlite.topi.reduction import reduce_max, reduce_min


@dataclass(frozen=True)
class Dense:
    """``x @ weights.T + bias``.

    Attributes:
        weights: ``(columns, width)``.
        bias: ``(columns,)``.
    """

    node: NodeView
    weights: str
    bias: str

    def __call__(self, x: str) -> str:
        return self.node.apply(add, self.node.apply(gemm, x, self.weights, transpose_b=True), self.bias)

    def part(self, begin: int, count: int) -> Dense:
        """Some of its columns."""
        weights, bias = (cut(self.node, name, 0, begin, count) for name in (self.weights, self.bias))
        return Dense(self.node, weights, bias)


@dataclass(frozen=True)
class QuantizedDense:
    """``x @ ((weights - zero) * scale) + bias``, of ``x`` quantised to bytes by its own range.

    Attributes:
        weights: ``(width, columns)`` bytes.
        scale, zero: one for all, or one for each column.
        bias: ``(columns,)``; ``None`` is 0.
    """

    node: NodeView
    weights: str
    scale: str
    zero: str
    bias: str | None

    def __call__(self, x: str) -> str:
        data, scale, zero = quantized(self.node, x)
        known = self.node.builder.array(self.zero)
        zeros = [zero] if known is not None and not known.any() else [zero, self.zero]
        total = self.node.apply(topi.integer_matmul, data, self.weights, *zeros)
        result = self.node.apply(topi.rescale, total, scale, self.scale)
        return result if self.bias is None else self.node.apply(add, result, self.bias)


def dynamic_quantize_linear(node: NodeView) -> tuple[str, str, str]:
    """As onnxruntime does it: of nothing but zeros the scale is 1, where ONNX's own definition divides by 0."""
    return quantized(node, node.input(0))


def quantized(node: NodeView, x: str) -> tuple[str, str, str]:
    """``x`` in bytes, with the scale and the zero point by which its own range, and 0, just fit."""
    lowest, highest = node.apply(reduce_min, x), node.apply(reduce_max, x)
    scale = node.apply(topi.dynamic_scale, lowest, highest)
    zero = node.apply(topi.dynamic_zero, lowest, scale)
    return node.apply(topi.quantize, x, scale, zero, dtype="uint8"), scale, zero
