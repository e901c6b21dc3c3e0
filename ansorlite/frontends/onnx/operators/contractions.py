"""Converters of matrix products, convolutions and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ansorlite.frontends.onnx.node import NodeView
from ansorlite.graph.describe import Operator
from ansorlite.te import dtypes
from ansorlite.topi.col2im import col2im
from ansorlite.topi.conv import conv, conv_transpose
from ansorlite.topi.elementwise import add, multiply
from ansorlite.topi.matmul import gemm, matmul
from ansorlite.topi.pooling import (
    average_pool,
    global_average_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
    max_pool_places,
)
from ansorlite.topi.shape import reshape


def convert_matmul(node: NodeView) -> str:
    return node.apply(matmul, node.input(0), node.input(1))


def convert_gemm(node: NodeView) -> str:
    product = node.apply(
        gemm,
        node.input(0),
        node.input(1),
        transpose_a=bool(node.integer("transA", 0)),
        transpose_b=bool(node.integer("transB", 0)),
    )
    product = _scaled(node, product, node.number("alpha", 1.0))
    if not node.has(2):
        return product
    return node.apply(add, product, _scaled(node, node.input(2), node.number("beta", 1.0)))


def _scaled(node: NodeView, value: str, factor: float) -> str:
    if factor == 1.0:
        return value
    dtype = dtypes.NUMPY[node.builder.value(value).dtype]
    return node.apply(multiply, value, node.constant(np.asarray(factor).astype(dtype)))


def window_of(node: NodeView, kernel: tuple[int, ...], extents: tuple[int, ...], ceil_mode: bool = False) -> dict[str, Any]:
    """Strides, dilations and pads of a window over ``extents``, with ``auto_pad`` worked out."""
    rank = len(kernel)
    strides = node.integers("strides") or (1,) * rank
    dilations = node.integers("dilations") or (1,) * rank
    pads = node.integers("pads") or (0,) * (2 * rank)
    if not len(strides) == len(dilations) == len(extents) == rank or len(pads) != 2 * rank:
        raise node.error(
            f"strides {strides}, dilations {dilations}, pads {pads} and data of {len(extents)} dimensions do not fit {kernel}"
        )
    before, after = pads[:rank], pads[rank:]
    automatic = node.text("auto_pad", "NOTSET")
    if automatic == "VALID":
        before = after = (0,) * rank
    elif automatic in ("SAME_UPPER", "SAME_LOWER"):
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        missing = [max(0, (-(-e // s) - 1) * s + span - e) for e, s, span in zip(extents, strides, spans, strict=True)]
        small, large = tuple(m // 2 for m in missing), tuple(m - m // 2 for m in missing)
        before, after = (small, large) if automatic == "SAME_UPPER" else (large, small)
    elif automatic != "NOTSET":
        raise node.error(f"auto_pad {automatic!r} is unknown")
    found: dict[str, Any] = {"strides": strides, "before": before, "after": after, "dilations": dilations}
    return {**found, "ceil_mode": True} if ceil_mode else found


def check_kernel(node: NodeView, kernel: tuple[int, ...]) -> None:
    declared = node.integers("kernel_shape")
    if declared is not None and declared != kernel:
        raise node.error(f"kernel_shape is {declared}, but the weight's kernel is {kernel}")


def _biased(node: NodeView, result: str, position: int) -> str:
    """``result (n, c, ...)`` with a bias ``(c,)`` added, if there is one."""
    if not node.has(position):
        return result
    value = node.builder.value(result)
    channels = value.shape[1]
    if node.value(position).shape != (channels,):
        raise node.error(f"the bias has shape {node.value(position).shape}, and must be ({channels},)")
    bias = node.apply(reshape, node.input(position), shape=(channels, *(1,) * (len(value.shape) - 2)))
    return node.apply(add, result, bias)


def convert_conv(node: NodeView) -> str:
    kernel = node.value(1).shape[2:]
    check_kernel(node, kernel)
    slide = window_of(node, kernel, node.value(0).shape[2:])
    result = node.apply(conv, node.input(0), node.input(1), groups=node.integer("group", 1), **slide)
    return _biased(node, result, 2)


def convert_col2im(node: NodeView) -> str:
    image, block = (tuple(int(extent) for extent in node.array(position).reshape(-1)) for position in (1, 2))
    slide = window_of(node, block, image)
    return node.apply(col2im, node.input(0), image=image, block=block, **slide)


def convert_conv_transpose(node: NodeView) -> str:
    kernel, extents = node.value(1).shape[2:], node.value(0).shape[2:]
    check_kernel(node, kernel)
    rank = len(kernel)
    extra = node.integers("output_padding") or (0,) * rank
    wanted = node.integers("output_shape")
    automatic = node.text("auto_pad", "NOTSET")
    strides = node.integers("strides") or (1,) * rank
    dilations = node.integers("dilations") or (1,) * rank
    if not len(extra) == len(strides) == len(dilations) == len(extents) == rank or (wanted and len(wanted) < rank):
        raise node.error(f"its attributes and data do not all have the {rank} dimensions of its kernel")
    pads = node.integers("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise node.error(f"pads {pads} must be two numbers for each of {rank} dimensions")
    before, after = pads[:rank], pads[rank:]
    if wanted or automatic in ("SAME_UPPER", "SAME_LOWER"):
        sizes = wanted[-rank:] if wanted else tuple(e * s for e, s in zip(extents, strides, strict=True))
        full = [
            (e - 1) * s + (k - 1) * d + 1 + o for e, s, k, d, o in zip(extents, strides, kernel, dilations, extra, strict=True)
        ]
        surplus = [f - size for f, size in zip(full, sizes, strict=True)]
        extra = tuple(o + max(0, -cut) for o, cut in zip(extra, surplus, strict=True))
        small, large = tuple(max(0, c) // 2 for c in surplus), tuple(max(0, c) - max(0, c) // 2 for c in surplus)
        before, after = (small, large) if automatic == "SAME_UPPER" else (large, small)
    result = node.apply(
        conv_transpose,
        node.input(0),
        node.input(1),
        strides=strides,
        before=before,
        after=after,
        dilations=dilations,
        groups=node.integer("group", 1),
        output_padding=extra,
    )
    return _biased(node, result, 2)


def _pool(node: NodeView, operator: Operator, **more: int) -> str:
    node.only_first_output()
    return node.apply(operator, node.input(0), **_pooled(node), **more)


def _pooled(node: NodeView) -> dict[str, Any]:
    """The window of a pooling operator."""
    kernel = node.integers("kernel_shape")
    if kernel is None:
        raise node.error("attribute 'kernel_shape' is missing")
    return {"kernel": kernel, **window_of(node, kernel, node.value(0).shape[2:], bool(node.integer("ceil_mode", 0)))}


def convert_max_pool(node: NodeView) -> tuple[str, ...]:
    slide = _pooled(node)
    largest = node.apply(max_pool, node.input(0), **slide)
    if not any(node.wanted[1:]):
        return (largest,)
    column_major = bool(node.integer("storage_order", 0))
    return largest, node.apply(max_pool_places, node.input(0), largest, column_major=column_major, **slide)


def convert_average_pool(node: NodeView) -> str:
    return _pool(node, average_pool, count_include_pad=bool(node.integer("count_include_pad", 0)))


def convert_global_average_pool(node: NodeView) -> str:
    return node.apply(global_average_pool, node.input(0))


def convert_global_max_pool(node: NodeView) -> str:
    return node.apply(global_max_pool, node.input(0))


def convert_global_lp_pool(node: NodeView) -> str:
    return node.apply(global_lp_pool, node.input(0), p=node.integer("p", 2))


def convert_lp_pool(node: NodeView) -> str:
    return _pool(node, lp_pool, p=node.integer("p", 2))
