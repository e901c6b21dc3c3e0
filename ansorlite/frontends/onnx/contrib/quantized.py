"""What onnxruntime's quantisers write: operators on bytes with their scales, and products with weights of a few bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from onnx import TensorProto

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.writer import Writer

_FLOATS: Final = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def quantize(w: Writer) -> None:
    w.give(0, w("QuantizeLinear", *w.inputs, axis=w.integer("axis", 1)))


def dequantize(w: Writer) -> None:
    w.give(0, w("DequantizeLinear", *w.inputs, axis=w.integer("axis", 1)))


def _real(w: Writer, position: int, axis: int | None = None) -> str:
    """An input as numbers; its scale and its zero point come after it."""
    return w("DequantizeLinear", *(w.input(p) for p in range(position, position + 3)), axis=axis)


def _give(w: Writer, result: str, scale: int) -> None:
    """The result in bytes; the position of its zero point is after that of its scale."""
    w.give(0, w("QuantizeLinear", result, w.input(scale), w.input(scale + 1)))


def on_two(operator: str) -> Callable[[Writer], None]:
    """An operator of two quantised inputs."""

    def write(w: Writer) -> None:
        _give(w, w(operator, _real(w, 0), _real(w, 3)), 6)

    return write


def on_one(operator: str, *attributes: str) -> Callable[[Writer], None]:
    """An operator of one quantised input, with those of these attributes that are given."""

    def write(w: Writer) -> None:
        w.refuse("channels_last")
        _give(w, w(operator, _real(w, 0), **{name: w.attributes.get(name) for name in attributes}), 3)

    return write


def softmax(w: Writer) -> None:
    rank, axis = len(w.value(0).shape), w.integer("axis", -1)
    if w.integer("opset", 13) < 13 and axis not in (-1, rank - 1):
        raise UnsupportedError("before opset 13 a softmax of all dimensions from its axis on")
    _give(w, w("Softmax", _real(w, 0), axis=axis), 3)


def concat(w: Writer) -> None:
    parts = [_real(w, position) for position in range(2, len(w.inputs), 3)]
    _give(w, w("Concat", *parts, axis=w.integer("axis", 0)), 0)


def where(w: Writer) -> None:
    _give(w, w("Where", w.input(0), _real(w, 1), _real(w, 4)), 7)


def gemm(w: Writer) -> None:
    transposed = w.integer("transB", 0)
    alpha = w.number("alpha", 1.0)
    own = {"alpha": alpha, "transA": w.attributes.get("transA"), "transB": transposed}
    total = w("Gemm", _real(w, 0), _real(w, 3, axis=0 if transposed else 1), **own)
    if w.has(6):
        step = w("Mul", w("Mul", w.input(1), w.input(4)), w.scalar(alpha, like=1))
        total = w("Add", total, w("Mul", w("Cast", w.input(6), to=TensorProto.FLOAT), step))
    if w.has(7):
        _give(w, total, 7)
    else:
        w.give(0, total)


def dynamic_quantize_matmul(w: Writer) -> None:
    data, scale, zero = w.several("DynamicQuantizeLinear", [w.input(0)], 3)
    total = w("MatMulInteger", data, w.input(1), zero, w.input(3))
    _give_real(w, total, w("Mul", scale, w.input(2)), bias=4)


def matmul_integer_to_float(w: Writer) -> None:
    total = w("MatMulInteger", w.input(0), w.input(1), w.input(4), w.input(5))
    _give_real(w, total, w("Mul", w.input(2), w.input(3)), bias=6)


def _give_real(w: Writer, total: str, step: str, bias: int) -> None:
    result = w("Mul", w("Cast", total, to=TensorProto.FLOAT), step)
    w.give(0, w("Add", result, w.input(bias)) if w.has(bias) else result)


def matmul_nbits(w: Writer) -> None:
    """Weights (rows, blocks, bytes of a block), with a scale and a zero point a block; the least bits of a byte come first."""
    depth, columns, size = map(w.count, ("K", "N", "block_size"))
    bits = w.integer("bits", 4)
    w.refuse("weight_prepacked")
    if bits not in (2, 4, 8) or (w.has(4) and 0 not in w.value(4).shape):
        raise UnsupportedError(f"weights of {bits} bits" if bits not in (2, 4, 8) else "rows in an order of their own")
    blocks = -(-depth // size)
    if math.prod(w.value(1).shape) * 8 != columns * blocks * size * bits:
        raise ModelError(f"MatMulNBits: weights {w.value(1).shape} are not {columns} rows of {blocks} blocks of {size} numbers")
    kind = _FLOATS.get(w.value(0).dtype)
    if kind is None:
        raise UnsupportedError(f"a product with {w.value(0).dtype}")
    levels = w.reshaped(_unpacked(w, w.reshaped(w.input(1), (columns, -1)), bits), (columns, blocks, size))
    if not w.has(3):
        zeros = w.scalar(1 << (bits - 1))
    elif w.value(3).dtype == "uint8":
        packed = w.reshaped(w.input(3), (columns, -1))
        unpacked = w.cut(_unpacked(w, packed, bits), 0, blocks, axis=1)
        zeros = w.unsqueezed(w("Cast", unpacked, to=kind), 2)
    else:
        zeros = w.reshaped(w.input(3), (columns, blocks, 1))
    scales = w.reshaped(w.input(2), (columns, blocks, 1))
    weights = w("Mul", w("Sub", w("Cast", levels, to=kind), zeros), scales)
    rows = w.cut(w.reshaped(weights, (columns, blocks * size)), 0, depth, axis=1)
    product = w("MatMul", w.input(0), w("Transpose", rows, perm=[1, 0]))
    w.give(0, w("Add", product, w.input(5)) if w.has(5) else product)


def _unpacked(w: Writer, rows: str, bits: int) -> str:
    """Rows of bytes as rows of numbers of so many bits."""
    if bits == 8:
        return rows
    mask = w.constant(np.uint8((1 << bits) - 1))
    parts = []
    for shift in range(0, 8, bits):
        moved = w("BitShift", rows, w.constant(np.uint8(shift)), direction="RIGHT") if shift else rows
        parts.append(w.unsqueezed(w("BitwiseAnd", moved, mask), 2))
    return w("Flatten", w("Concat", *parts, axis=2), axis=1)
