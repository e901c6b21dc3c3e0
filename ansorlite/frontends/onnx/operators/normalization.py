"""Converters of softmax, norms and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

from onnx import TensorProto, helper

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.graph.constants import splat
from ansorlite.graph.describe import Operator
from ansorlite.te import dtypes
from ansorlite.topi import norm
from ansorlite.topi.elementwise import add, cast, multiply
from ansorlite.topi.reduction import wide_mean
from ansorlite.topi.shape import reshape


def softmax(operator: Operator) -> Callable[[NodeView], str]:
    """Softmax or its logarithm. Before opset 13 it runs over all dimensions from ``axis`` on, since then over one."""

    def convert(node: NodeView) -> str:
        rank = len(node.value(0).shape)
        axis = node.integer("axis", -1 if node.opset >= 13 else 1)
        if not -rank <= axis < max(rank, 1):
            raise node.error(f"axis {axis} is not among the {rank} dimensions of its input")
        axes = (axis,) if node.opset >= 13 else tuple(range(axis % rank, rank))
        return node.apply(operator, node.input(0), axes=axes)

    return convert


def reduction(operator: Operator) -> Callable[[NodeView], str]:
    """A reduction; its axes are an attribute in older opsets, an input in newer ones."""

    def convert(node: NodeView) -> str:
        axes = node.integers_at(1, "axes") or None
        if axes is None and node.integer("noop_with_empty_axes", 0):
            axes = ()
        return node.apply(operator, node.input(0), axes=axes, keepdims=bool(node.integer("keepdims", 1)))

    return convert


def batch_normalization(node: NodeView) -> str:
    """``x * scale + shift``; constants make both constant."""
    node.only_first_output()
    if node.integer("training_mode", 0):
        raise UnsupportedError("training_mode=1 computes statistics, too")
    if node.opset < 9 and not node.integer("spatial", 1):
        raise UnsupportedError("spatial=0")
    x, gamma, beta, mean, variance = (node.input(position) for position in range(5))
    rank = len(node.value(0).shape)
    if rank < 2 or any(node.value(p).shape != (node.value(0).shape[1],) for p in range(1, 5)):
        raise node.error(f"it needs one scale, shift, mean and variance for each channel of {node.value(0).shape}")
    scale = node.apply(norm.batch_norm_scale, gamma, variance, epsilon=node.number("epsilon", 1e-5), rank=rank)
    shift = node.apply(norm.batch_norm_shift, beta, mean, scale)
    return node.apply(add, node.apply(multiply, x, scale), shift)


def layer_normalization(node: NodeView) -> tuple[str, ...]:
    x, shape = node.input(0), node.value(0).shape
    rank, axis, epsilon = len(shape), node.integer("axis", -1), node.number("epsilon", 1e-5)
    stash = helper.tensor_dtype_to_np_dtype(node.integer("stash_type", TensorProto.FLOAT)).name
    axes = tuple(range(axis % rank, rank))
    if 0 in shape:
        # The mean of nothing is no number, and the result has no elements.
        nothing = node.constant(splat(dtypes.NUMPY[stash].type("nan"), (*shape[: axes[0]], *(1 for _ in axes))))
        return node.constant(splat(dtypes.NUMPY[node.value(0).dtype].type(0), shape)), nothing, nothing
    result = node.apply(norm.layer_norm, x, node.input(1), axis=axis, epsilon=epsilon)
    if node.has(2):
        result = node.apply(add, result, node.input(2))
    if not any(node.wanted[1:]):
        return (result,)
    statistics = (
        node.apply(wide_mean, x, axes=axes, keepdims=True),
        node.apply(norm.inverse_deviation, x, axes=axes, epsilon=epsilon),
    )
    return result, *(node.apply(cast, statistic, dtype=stash) for statistic in statistics)


def rms_normalization(node: NodeView) -> str:
    return node.apply(
        norm.rms_norm, node.input(0), node.input(1), axis=node.integer("axis", -1), epsilon=node.number("epsilon", 1e-5)
    )


def instance_normalization(node: NodeView) -> str:
    return node.apply(norm.instance_norm, node.input(0), node.input(1), node.input(2), epsilon=node.number("epsilon", 1e-5))


def group_normalization(node: NodeView) -> str:
    if node.opset < 21:
        raise UnsupportedError("before opset 21, scale and bias are given for each group")
    shape = node.value(0).shape
    groups = node.integer("num_groups", 1)
    if groups < 1 or len(shape) < 3 or shape[1] % groups:
        raise node.error(f"{groups} groups do not divide the channels of {shape}")
    grouped = node.apply(reshape, node.input(0), shape=(shape[0], groups, shape[1] // groups * math.prod(shape[2:])))
    standard = node.apply(norm.standardize, grouped, axes=(2,), epsilon=node.number("epsilon", 1e-5))
    per_channel = (shape[1], *(1,) * (len(shape) - 2))
    scale, bias = (node.apply(reshape, node.input(p), shape=per_channel) for p in (1, 2))
    return node.apply(add, node.apply(multiply, node.apply(reshape, standard, shape=shape), scale), bias)


def mean_variance_normalization(node: NodeView) -> str:
    """``(x - mean) / (deviation + 1e-9)``: so small a number, that float16 does not have, only matters where all is equal."""
    dtype, axes = node.value(0).dtype, node.integers("axes") or (0, 2, 3)
    x = node.input(0) if dtypes.size(dtype) >= 4 else node.apply(cast, node.input(0), dtype="float32")
    standard = node.apply(norm.standardize, x, axes=axes, epsilon=1e-18)
    return standard if dtypes.size(dtype) >= 4 else node.apply(cast, standard, dtype=dtype)


def lrn(node: NodeView) -> str:
    size = node.integer("size", 0)
    return node.apply(
        norm.lrn,
        node.input(0),
        size=size,
        alpha=node.number("alpha", 1e-4),
        beta=node.number("beta", 0.75),
        bias=node.number("bias", 1.0),
    )


def lp_normalization(node: NodeView) -> str:
    return node.apply(norm.lp_normalize, node.input(0), axis=node.integer("axis", -1), p=node.integer("p", 2))
