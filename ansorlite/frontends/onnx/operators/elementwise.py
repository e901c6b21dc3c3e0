"""Converters of element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.graph.constants import splat
from ansorlite.graph.describe import Operator
from ansorlite.te import dtypes
from ansorlite.topi import activations, bits, elementwise
from ansorlite.topi.shape import reshape

Converter = Callable[[NodeView], str]


def plain(operator: Operator, inputs: int = 1, **attributes: float) -> Converter:
    """An operator with ``inputs`` inputs; ``attributes`` are ONNX's numbers of the same names, with their defaults."""

    def convert(node: NodeView) -> str:
        given = {name: node.number(name, default) for name, default in attributes.items()}
        return node.apply(operator, *(node.input(position) for position in range(inputs)), **given)

    return convert


def empty_as_it_is(convert: Converter) -> Converter:
    """``convert``; of a tensor without elements, that itself: for operators whose shapes ONNX's inference does not know."""
    return lambda node: node.input(0) if 0 in node.value(0).shape else convert(node)


def variadic(operator: Operator) -> Converter:
    """A binary operator folded over any number of inputs."""

    def convert(node: NodeView) -> str:
        result = node.input(0)
        for position in range(1, len(node.inputs)):
            result = node.apply(operator, result, node.input(position))
        return result

    return convert


def mean(node: NodeView) -> str:
    total = variadic(elementwise.add)(node)
    count = node.constant(np.asarray(len(node.inputs), dtypes.NUMPY[node.value(0).dtype]))
    return node.apply(elementwise.divide, total, count)


def same(node: NodeView) -> str:
    return node.input(0)


def dropout(node: NodeView) -> tuple[str, ...]:
    """At inference nothing is dropped: the mask is all true."""
    training = bool(node.array(2).any()) if node.has(2) else node.opset < 7 and not node.integer("is_test", 0)
    if training:
        raise UnsupportedError("in training mode it draws random numbers")
    mask = node.constant(splat(np.True_, node.value(0).shape)) if any(node.wanted[1:]) else node.input(0)
    return node.input(0), mask


def clip(node: NodeView) -> str:
    if node.opset < 11:
        low, high = node.number("min", float("-inf")), node.number("max", float("inf"))
        limits: list[Any] = [None if np.isinf(limit) else limit for limit in (low, high)]
        return node.apply(elementwise.clip, node.input(0), low=limits[0], high=limits[1])
    known = [not node.has(p) or node.builder.array(node.input(p)) is not None for p in (1, 2)]
    if all(known):
        limits = [node.scalar(p).item() if node.has(p) else None for p in (1, 2)]
        return node.apply(elementwise.clip, node.input(0), low=limits[0], high=limits[1])
    result = node.apply(elementwise.maximum, node.input(0), node.input(1)) if node.has(1) else node.input(0)
    return node.apply(elementwise.minimum, result, node.input(2)) if node.has(2) else result


def cast(node: NodeView) -> str:
    number = node.integer("to", 0)
    try:
        dtype = helper.tensor_dtype_to_np_dtype(number).name
    except (KeyError, ValueError):
        dtype = f"type {number}"
    if dtype not in dtypes.NUMPY:
        raise UnsupportedError(f"{dtype} has no arithmetic here")
    return node.input(0) if node.value(0).dtype == dtype else node.apply(elementwise.cast, node.input(0), dtype=dtype)


def prelu(node: NodeView) -> str:
    """Before opset 7 the slope was one number for each channel."""
    slope, rank = node.input(1), len(node.value(0).shape)
    own = node.value(1).shape
    if node.opset < 7 and len(own) == 1 and rank > 1:
        slope = node.apply(reshape, slope, shape=(*own, *(1,) * (rank - 2)))
    return node.apply(activations.prelu, node.input(0), slope)


def power(node: NodeView) -> str:
    """The exponent may be of another dtype than the base, one that does not mix with it: an integer beside bfloat16."""
    base, exponent = node.value(0).dtype, node.value(1).dtype
    if not dtypes.is_float(base) or dtypes.size(base) > 2 or base == exponent:
        return old_broadcast(elementwise.power)(node)
    return node.apply(elementwise.power, *(node.apply(elementwise.cast, node.input(p), dtype="float32") for p in (0, 1)))


def gelu(node: NodeView) -> str:
    return node.apply(activations.gelu, node.input(0), approximate=node.text("approximate", "none") == "tanh")


def modulo(node: NodeView) -> str:
    operator = elementwise.remainder if node.integer("fmod", 0) else elementwise.modulo
    return node.apply(operator, node.input(0), node.input(1))


def bit_shift(node: NodeView) -> str:
    left = node.text("direction", "") == "LEFT"
    return node.apply(bits.shift_left if left else bits.shift_right, node.input(0), node.input(1))


def is_infinite(node: NodeView) -> str:
    positive, negative = (bool(node.integer(f"detect_{sign}", 1)) for sign in ("positive", "negative"))
    return node.apply(elementwise.is_infinite, node.input(0), positive=positive, negative=negative)


def old_broadcast(operator: Operator) -> Converter:
    """A binary operator; before opset 7, ``axis`` said where the second operand's dimensions begin in the first's."""

    def convert(node: NodeView) -> str:
        a, b = node.input(0), node.input(1)
        axis = node.integer("axis", -1)
        if node.opset < 7 and axis >= 0:
            left, right = node.value(0).shape, node.value(1).shape
            b = node.apply(reshape, b, shape=(*right, *(1,) * (len(left) - axis - len(right))))
        return node.apply(operator, a, b)

    return convert
