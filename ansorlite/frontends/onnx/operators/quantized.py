"""Converters of quantised operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from onnx import TensorProto, helper

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.frontends.onnx.operators.contractions import check_kernel, window_of
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array
from ansorlite.te import dtypes
from ansorlite.topi import quantized as topi
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import add, cast, divide, multiply, subtract
from ansorlite.topi.reduction import reduce_sum
from ansorlite.topi.shape import reshape

#: Rows up to which weights of a few bits are unpacked where they are multiplied. That takes some five operations a weight, again
#: for each few rows, and saves reading four or eight times as many bytes; for more rows weights are made numbers beforehand.
_FEW_ROWS: Final = 8


def quantize_linear(node: NodeView) -> str:
    number = node.integer("output_dtype", TensorProto.UNDEFINED)
    dtype = node.value(2).dtype if node.has(2) else "uint8"
    if not node.has(2) and number:
        dtype = helper.tensor_dtype_to_np_dtype(number).name
    if dtype not in dtypes.NUMPY or not dtypes.is_integer(dtype) or dtypes.size(dtype) > 2:
        raise UnsupportedError(f"quantised to {dtype}")
    return _scaled(node, topi.quantize, dtype=dtype)


def dequantize_linear(node: NodeView) -> str:
    if not dtypes.is_integer(node.value(0).dtype):
        raise UnsupportedError(f"quantised to {node.value(0).dtype}")
    number = node.integer("output_dtype", TensorProto.UNDEFINED)
    if number and helper.tensor_dtype_to_np_dtype(number).name != node.value(1).dtype:
        raise UnsupportedError("a result of another dtype than the scale's")
    return _scaled(node, topi.dequantize)


def _scaled(node: NodeView, operator: Operator, **attributes: str) -> str:
    rank = len(node.value(0).shape)
    axis = node.integer("axis", 1)
    inputs = [node.input(position) for position in range(3) if node.has(position)]
    # With one scale for all, the axis means nothing, and need not be there.
    axis = axis % rank if -rank <= axis < rank else 0
    return node.apply(operator, *inputs, axis=axis, block=node.integer("block_size", 0), **attributes)


def _zero(node: NodeView, position: int) -> str | None:
    """A zero point; ``None`` if it is left out, or known to be 0."""
    if not node.has(position):
        return None
    known = node.builder.array(node.input(position))
    return None if known is not None and not known.any() else _flat(node, node.input(position))


def _flat(node: NodeView, name: str) -> str:
    """One scale or zero point, or one for each row or column, as a scalar or a vector."""
    shape = node.builder.value(name).shape
    length = math.prod(shape)
    if length != max(shape, default=1):
        raise UnsupportedError("scales or zero points for each matrix of a batch")
    wanted = () if length == 1 else (length,)
    return name if shape == wanted else node.apply(reshape, name, shape=wanted)


def _product(node: NodeView, a: int, b: int, a_zero: int, b_zero: int) -> str:
    zeros = [_zero(node, a_zero), _zero(node, b_zero)]
    if zeros[0] is None and zeros[1] is not None:
        zeros[0] = node.constant(dtypes.NUMPY[node.value(a).dtype].type(0))
    given = (zero for zero in zeros if zero is not None)
    return node.apply(topi.integer_matmul, node.input(a), node.input(b), *given)


def matmul_integer(node: NodeView) -> str:
    return _product(node, 0, 1, 2, 3)


def qlinear_matmul(node: NodeView) -> str:
    _check_small(node, (0, 3, 7))
    total = _product(node, 0, 3, 2, 5)
    rank = len(node.builder.value(total).shape)
    by_row = math.prod(node.value(1).shape) > 1 or math.prod(node.value(6).shape) > 1
    if by_row and math.prod(node.value(4).shape) > 1:
        raise UnsupportedError("scales for rows and columns at once")
    return _requantized(node, total, (1, 4, 6), 7, rank - 2 if by_row else rank - 1)


def conv_integer(node: NodeView) -> str:
    return _convolution(node, 0, 1, 2, 3)


def qlinear_conv(node: NodeView) -> str:
    _check_small(node, (0, 3, 7))
    total = _convolution(node, 0, 3, 2, 5)
    if node.has(8):
        shape = node.builder.value(total).shape
        total = node.apply(add, total, node.apply(reshape, node.input(8), shape=(shape[1], *(1,) * (len(shape) - 2))))
    return _requantized(node, total, (1, 4, 6), 7, 1)


def _check_small(node: NodeView, positions: tuple[int, ...]) -> None:
    for position in positions:
        dtype = node.value(position).dtype
        if not dtypes.is_integer(dtype) or dtypes.size(dtype) > 1:
            raise UnsupportedError(f"quantised to {dtype}")


def _convolution(node: NodeView, x: int, weight: int, x_zero: int, weight_zero: int) -> str:
    kernel = node.value(weight).shape[2:]
    check_kernel(node, kernel)
    slide = window_of(node, kernel, node.value(x).shape[2:])
    shift = _zero(node, x_zero)
    known = None if shift is None else node.builder.array(shift)
    own = _zero(node, weight_zero)
    inputs = [node.input(x), node.input(weight), *([own] if own else [])]
    zero = 0 if known is None else int(node.scalar(x_zero))
    total = node.apply(topi.integer_conv, *inputs, zero=zero, groups=node.integer("group", 1), **slide)
    if shift is None or known is not None:
        return total
    weights = _met_weights(node, x, weight, own, slide)
    return node.apply(subtract, total, node.apply(multiply, node.apply(cast, shift, dtype="int32"), weights))


def _met_weights(node: NodeView, x: int, weight: int, weight_zero: str | None, slide: Mapping[str, tuple[int, ...]]) -> str:
    """For each output of a convolution, the sum of the weights that meet data there, and not the border.

    That sum times the data's zero point, which is known only while the model runs, is how much of the convolution it makes.
    """
    taps = node.apply(cast, node.input(weight), dtype="int32")
    rank = len(node.value(weight).shape)
    if weight_zero is not None:
        zeros = node.apply(cast, weight_zero, dtype="int32")
        spread = (*node.builder.value(zeros).shape, *(1,) * (rank - 1)) if node.builder.value(zeros).shape else ()
        taps = node.apply(subtract, taps, node.apply(reshape, zeros, shape=spread) if spread else zeros)
    sums = node.apply(reduce_sum, taps, axes=(1,), keepdims=True)
    ones = node.constant(np.ones((1, 1, *node.value(x).shape[2:]), np.int32))
    return node.apply(conv, ones, sums, **slide)


def _single(node: NodeView, name: str) -> str:
    """A scale as float32."""
    return name if node.builder.value(name).dtype == "float32" else node.apply(cast, name, dtype="float32")


def _requantized(node: NodeView, total: str, scales: tuple[int, int, int], zero: int, axis: int) -> str:
    """``total`` times the first two scales, by the third one."""
    first, second, third = (_single(node, _flat(node, node.input(position))) for position in scales)
    factor = node.apply(divide, node.apply(multiply, first, second), third)
    return node.apply(topi.requantize, total, factor, _flat(node, node.input(zero)), axis=axis)


def matmul_nbits(node: NodeView) -> str:
    """onnxruntime's product with weights of a few bits, of few rows."""
    shape, weight = node.value(0).shape, node.value(1)
    bits, depth = node.integer("bits", 4), node.integer("K", 0)
    blocks = weight.shape[:2]
    whole = len(weight.shape) == 3 and shape[-1:] == (depth,) and weight.shape[1] * weight.shape[2] * 8 == depth * bits
    if (
        math.prod(shape[:-1]) > _FEW_ROWS
        or bits not in (2, 4, 8)
        or not whole
        or node.has(4)
        or node.integer("weight_prepacked", 0)
    ):
        raise UnsupportedError("many rows, or blocks that are not whole")
    inputs = [node.input(0), node.input(1), node.apply(reshape, node.input(2), shape=blocks)]
    if node.has(3):
        inputs.append(node.constant(_zero_points(node, blocks, bits)))
    product = node.apply(topi.packed_matmul, *inputs, bits=bits)
    return node.apply(add, product, node.input(5)) if node.has(5) else product


def _zero_points(node: NodeView, blocks: tuple[int, ...], bits: int) -> Array:
    """Of each block, as float32; given as such numbers, or in bytes as weights are."""
    given = node.array(3)
    packed = given.dtype == np.uint8
    row = -(-blocks[1] * bits // 8) if packed else blocks[1]
    if given.size != blocks[0] * row:
        raise node.error(f"its zero points have shape {given.shape}; there must be {row} for each of {blocks[0]} rows")
    if not packed:
        return given.reshape(blocks).astype(np.float32)
    levels = given.reshape(blocks[0], row, 1) >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return levels.reshape(blocks[0], -1)[:, : blocks[1]].astype(np.float32)
