"""Converters of Fourier transforms: products with matrices of cosines and sines, which are constants.

That is as many operations as a product has, where a fast transform has fewer; of rows of some thousands of elements, a product is
nevertheless what the rest of a model is made of, and fuses with what is around it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.graph.graph import Array
from ansorlite.te import dtypes
from ansorlite.topi.conv import conv
from ansorlite.topi.elementwise import multiply
from ansorlite.topi.matmul import matmul
from ansorlite.topi.shape import reshape, strided_slice, transpose

#: Elements of a matrix at most: longer rows are transformed in Python, by a fast transform.
_MOST: Final = 1 << 24


def convert_dft(node: NodeView) -> str:
    """Along one dimension; the last one has the real, and perhaps the imaginary parts."""
    shape = node.value(0).shape
    parts = _parts(node, shape)
    axis = node.integer("axis", 1) if node.opset < 20 else int(node.scalar(2)) if node.has(2) else -2
    if not -len(shape) <= axis < len(shape) or axis % len(shape) == len(shape) - 1:
        raise node.error(f"axis {axis} is none of the {len(shape) - 1} dimensions before that of real and imaginary parts")
    axis %= len(shape)
    inverse, onesided = bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0))
    halved = inverse and onesided
    length = int(node.scalar(1)) if node.has(1) else 2 * (shape[axis] - 1) if halved else shape[axis]
    if length < 1:
        raise node.error(f"a transform of {length} elements; it must be of 1 at least")
    extent = min(shape[axis], length // 2 + 1 if halved else length)
    _check(extent * parts * length * 2)
    matrix = _inverse(extent, length, onesided) if inverse else _forward(extent, length, onesided)
    matrix = matrix[:, :parts]
    order = (*(d for d in range(len(shape) - 1) if d != axis), axis, len(shape) - 1)
    taken = node.input(0)
    if extent < shape[axis]:
        counts = tuple(extent if d == axis else count for d, count in enumerate(shape))
        taken = node.apply(strided_slice, taken, starts=(0,) * len(shape), counts=counts, steps=(1,) * len(shape))
    rows = node.apply(transpose, taken, axes=order)
    lead = tuple(shape[d] for d in order[:-2])
    rows = node.apply(reshape, rows, shape=(*lead, extent * parts))
    product = node.apply(matmul, rows, _constant(node, matrix.reshape(extent * parts, -1)))
    if inverse:
        # Here, not in the matrix: what is a whole number there stays one.
        product = node.apply(multiply, product, _constant(node, np.asarray(1 / length)))
    result = node.apply(reshape, product, shape=(*lead, *matrix.shape[2:]))
    return node.apply(transpose, result, axes=tuple(map(order.index, range(len(shape)))))


def convert_stft(node: NodeView) -> str:
    """Of pieces of a signal, each weighted: a convolution whose weights are the matrix, times the window."""
    signal = node.input(0)
    shape = node.value(0).shape
    if len(shape) == 2:
        # Real numbers, which runtimes take without a dimension for their parts, too.
        shape = (*shape, 1)
        signal = node.apply(reshape, signal, shape=shape)
    parts = _parts(node, shape)
    if len(shape) != 3:
        raise node.error(f"the signal has shape {shape}; it must be (batch, elements), or (batch, elements, 1 or 2)")
    step = int(node.scalar(1))
    window = node.array(2) if node.has(2) else None
    length = int(node.scalar(3)) if node.has(3) else shape[1] if window is None else window.size
    if step < 1 or not 1 <= length <= shape[1] or (window is not None and window.shape != (length,)):
        raise UnsupportedError(f"frames of {length} elements, {step} apart, and this window")
    _check(length * parts * length * 2)
    matrix = _forward(length, length, bool(node.integer("onesided", 1)))[:, :parts]
    if window is not None:
        matrix = matrix * window.astype(np.float64)[:, None, None, None]
    bins = matrix.shape[2]
    weight = matrix.transpose(2, 3, 1, 0).reshape(bins * 2, parts, length)
    signal = node.apply(transpose, signal, axes=(0, 2, 1))
    frames = node.apply(conv, signal, _constant(node, weight), strides=(step,))
    count = (shape[1] - length) // step + 1
    return node.apply(reshape, node.apply(transpose, frames, axes=(0, 2, 1)), shape=(shape[0], count, bins, 2))


def _parts(node: NodeView, shape: tuple[int, ...]) -> int:
    if len(shape) < 2 or shape[-1] not in (1, 2):
        raise node.error(f"its data have shape {shape}; the last dimension must be 1, real numbers, or 2, complex ones")
    return shape[-1]


def _check(elements: int) -> None:
    if elements > _MOST:
        raise UnsupportedError(f"as a product it takes a matrix of {elements} elements")


def _forward(extent: int, length: int, onesided: bool) -> Array:
    """Of ``extent`` elements, and zeros up to ``length``: (extent, 2, frequencies, 2), with parts of elements and of results."""
    angles = _angles(extent, length, length // 2 + 1 if onesided else length)
    cosines, sines = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cosines, -sines], -1), np.stack([sines, cosines], -1)], 1)


def _inverse(extent: int, length: int, onesided: bool) -> Array:
    """Of ``extent`` frequencies, and zeros after them, times ``length``: (extent, 2, length, 2).

    With ``onesided`` others are their conjugates, and results are real: (extent, 2, length, 1).
    """
    angles = _angles(extent, length, length)
    cosines, sines = np.cos(angles), np.sin(angles)
    matrix = np.stack([np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)], 1)
    if not onesided:
        return matrix
    # Each frequency stands for its conjugate, too, but for the first one, and the last one of an even number.
    matrix[1 : (length + 1) // 2] *= 2
    return matrix[..., :1]


def _angles(extent: int, length: int, frequencies: int) -> Array:
    turns = np.arange(extent, dtype=np.int64)[:, None] * np.arange(frequencies, dtype=np.int64) % length
    return turns * (2 * np.pi / length)


def _constant(node: NodeView, array: Array) -> str:
    return node.constant(np.ascontiguousarray(array.astype(dtypes.NUMPY[node.value(0).dtype])))
