"""Converters of operators that take elements from, or put them to, places named by a tensor; and of patterns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from onnx import helper

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.graph.describe import Operator
from ansorlite.graph.graph import Array
from ansorlite.graph.limits import check_size
from ansorlite.te import dtypes
from ansorlite.topi import arguments, indexing, patterns
from ansorlite.topi.indexing import Scatter
from ansorlite.topi.shape import reshape

#: Pairs of elements that are compared at most, which takes about a millisecond.
_MOST_PAIRS: Final = 1 << 24


def gather_elements(node: NodeView) -> str:
    return node.apply(indexing.gather_elements, node.input(0), node.input(1), axis=node.integer("axis", 0))


def gather_nd(node: NodeView) -> str:
    return node.apply(indexing.gather_nd, node.input(0), node.input(1), batch_dims=node.integer("batch_dims", 0))


def _mode(node: NodeView) -> Scatter:
    text = node.text("reduction", "none")
    if text not in [mode.value for mode in Scatter]:
        raise node.error(f"reduction {text!r} is unknown")
    return Scatter(text)


def scatter_elements(node: NodeView) -> str:
    inputs = [node.input(position) for position in range(3)]
    shape, axis, mode = node.value(0).shape, node.integer("axis", 0), _mode(node)
    known = node.builder.array(inputs[1])
    places = None if known is None else _along(known, axis, shape, node.value(2).shape)
    found = None if places is None else _by_known_places(node, inputs[0], inputs[2], places, axis % len(shape), mode)
    return found or node.apply(indexing.scatter_elements, *inputs, axis=axis, mode=mode)


def _along(known: Array, axis: int, shape: tuple[int, ...], updated: tuple[int, ...]) -> Array | None:
    """The places along ``axis``, if whole slices are put to them, and none is outside."""
    if not known.size or known.shape != updated or known.ndim != len(shape) or not -len(shape) <= axis < len(shape):
        return None
    d = axis % len(shape)
    first = known[tuple(slice(None) if n == d else slice(1) for n in range(known.ndim))]
    whole = updated[:d] == shape[:d] and updated[d + 1 :] == shape[d + 1 :]
    return _inside(first.reshape(-1), shape[d]) if whole and (known == first).all() else None


def scatter_nd(node: NodeView) -> str:
    inputs = [node.input(position) for position in range(3)]
    shape, mode = node.value(0).shape, _mode(node)
    known = node.builder.array(inputs[1])
    places = None if known is None else _rows(known, shape)
    if known is not None and places is not None and node.value(2).shape == (*known.shape[:-1], *shape[known.shape[-1] :]):
        lead, rest = shape[: known.shape[-1]], shape[known.shape[-1] :]
        rows = node.apply(reshape, inputs[0], shape=(math.prod(lead), *rest))
        updates = node.apply(reshape, inputs[2], shape=(len(places), *rest))
        found = _by_known_places(node, rows, updates, places, 0, mode)
        if found is not None:
            return node.apply(reshape, found, shape=shape)
    return node.apply(indexing.scatter_nd, *inputs, mode=mode)


def _rows(known: Array, shape: tuple[int, ...]) -> Array | None:
    """Tuples of indices as places along one dimension, instead of the first ones of ``shape``; ``None`` if one is outside."""
    if not known.size or not known.ndim or known.shape[-1] > len(shape):
        return None
    extents = shape[: known.shape[-1]]
    tuples = _inside(known.reshape(-1, len(extents)), extents)
    return None if tuples is None else np.asarray(np.ravel_multi_index(tuple(tuples.T), extents))


def _inside(places: Array, extents: int | tuple[int, ...]) -> Array | None:
    """Places without those that count from the end; ``None`` if one is outside."""
    counted = np.where(places < 0, places + np.array(extents), places)
    return counted if ((counted >= 0) & (counted < np.array(extents))).all() else None


def _by_known_places(node: NodeView, x: str, updates: str, places: Array, axis: int, mode: Scatter) -> str | None:
    """Updates put to places along ``axis`` that are known now: nothing is to be looked for. ``None`` if several add up."""
    steps = np.diff(places)
    if (steps == (steps[0] if steps.size else 1)).all() and (steps > 0).all():
        step = int(steps[0]) if steps.size else 1
        return node.apply(indexing.slice_scatter, x, updates, axis=axis, start=int(places[0]), step=step, mode=mode)
    if mode is not Scatter.REPLACE and len(np.unique(places)) < len(places):
        return None
    table = np.full(node.builder.value(x).shape[axis], -1, np.int64)
    table[places] = np.arange(len(places))
    return node.apply(indexing.table_scatter, x, updates, node.constant(table), axis=axis, mode=mode)


def tensor_scatter(node: NodeView) -> str:
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise node.error(f"mode {mode!r} is unknown")
    begins = [node.input(2)] if node.has(2) else []
    axis = node.integer("axis", -2)
    return node.apply(indexing.tensor_scatter, node.input(0), node.input(1), *begins, axis=axis, circular=mode == "circular")


def reverse_sequence(node: NodeView) -> str:
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if {batch, time} != {0, 1} or len(node.value(0).shape) < 2:
        raise node.error(f"batch_axis {batch} and time_axis {time} must be the first two dimensions")
    return node.apply(indexing.reverse_sequence, node.input(0), node.input(1), batch_axis=batch, time_axis=time)


def arg_extreme(operator: Operator) -> Callable[[NodeView], str]:
    def convert(node: NodeView) -> str:
        return node.apply(
            operator,
            node.input(0),
            axis=node.integer("axis", 0),
            keepdims=bool(node.integer("keepdims", 1)),
            last=bool(node.integer("select_last_index", 0)),
        )

    return convert


def top_k(node: NodeView) -> tuple[str, str]:
    """The largest elements, and where they are. In order whether or not that is asked for."""
    shape = node.value(0).shape
    count, axis = int(node.scalar(1)) if node.opset >= 10 else node.integer("k", -1), node.integer("axis", -1)
    if not -len(shape) <= axis < len(shape) or count > shape[axis] or count < 0:
        raise node.error(f"the {count} largest elements along dimension {axis} of {shape} are asked for; there are not so many")
    if count == 0:
        raise UnsupportedError("the result has no elements")
    if math.prod(shape) * shape[axis] > _MOST_PAIRS:
        raise UnsupportedError(f"without sorting, {math.prod(shape) * shape[axis]} pairs of elements are to be compared")
    largest = bool(node.integer("largest", 1))
    places = node.apply(arguments.top_places, node.input(0), count=count, axis=axis, largest=largest)
    return node.apply(indexing.gather_elements, node.input(0), places, axis=axis), places


def hardmax(node: NodeView) -> str:
    """Before opset 13 it runs over all dimensions from ``axis`` on as if they were one, since then over one."""
    if node.opset >= 13:
        return node.apply(arguments.hardmax, node.input(0), axis=node.integer("axis", -1))
    shape, axis = node.value(0).shape, node.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise node.error(f"axis {axis} is not among the {len(shape)} dimensions of its input")
    cut = axis + len(shape) if axis < 0 else axis
    rows = node.apply(reshape, node.input(0), shape=(math.prod(shape[:cut]), math.prod(shape[cut:])))
    return node.apply(reshape, node.apply(arguments.hardmax, rows, axis=1), shape=shape)


def one_hot(node: NodeView) -> str:
    depth = int(node.scalar(1))
    if depth < 1:
        raise UnsupportedError("the result has no elements")
    return node.apply(patterns.one_hot, node.input(0), node.input(2), depth=depth, axis=node.integer("axis", -1))


def trilu(node: NodeView) -> str:
    offset = int(node.scalar(1)) if node.has(1) else 0
    return node.apply(patterns.triangle, node.input(0), upper=bool(node.integer("upper", 1)), offset=offset)


def eye_like(node: NodeView) -> str:
    """A constant: its shape is known."""
    number = node.integer("dtype", 0)
    dtype = helper.tensor_dtype_to_np_dtype(number).name if number else node.value(0).dtype
    shape = node.value(0).shape
    if len(shape) != 2 or dtype not in dtypes.NUMPY:
        raise UnsupportedError(f"{dtype} of shape {shape}")
    check_size(shape, dtype)
    return node.constant(np.eye(*shape, k=node.integer("k", 0)).astype(dtypes.NUMPY[dtype]))


def arange(node: NodeView) -> str:
    """How many elements there are must be known."""
    start, limit, delta = (node.scalar(position).item() for position in range(3))
    if delta == 0 or not all(map(math.isfinite, (start, limit, delta))):
        raise node.error(f"there is no range from {start} to {limit} in steps of {delta}")
    count = math.ceil((limit - start) / delta)
    if count < 1:
        raise UnsupportedError("the result has no elements")
    return node.apply(patterns.arange, node.input(0), node.input(2), count=count)


def cumulative(operator: Operator) -> Callable[[NodeView], str]:
    def convert(node: NodeView) -> str:
        return node.apply(
            operator,
            node.input(0),
            axis=int(node.scalar(1)),
            exclusive=bool(node.integer("exclusive", 0)),
            reverse=bool(node.integer("reverse", 0)),
        )

    return convert
