"""Converters of operators that move elements, and of constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import onnx

from ansorlite.frontends.onnx.node import NodeView, UnsupportedError
from ansorlite.frontends.onnx.tensors import dense_array, tensor_array
from ansorlite.graph.constants import first, splat
from ansorlite.te import dtypes
from ansorlite.topi import shape as topi
from ansorlite.topi.elementwise import broadcast_shape
from ansorlite.topi.padding import PadMode, pad


def constant(node: NodeView) -> str:
    tensor = node.tensor("value")
    if tensor is not None:
        return node.constant(tensor_array(tensor))
    sparse = node.sparse_tensor("sparse_value")
    if sparse is not None:
        return node.constant(dense_array(sparse))
    for name, dtype in (
        ("value_float", np.float32),
        ("value_int", np.int64),
        ("value_floats", np.float32),
        ("value_ints", np.int64),
    ):
        for attribute in node.proto.attribute:
            if attribute.name == name:
                return node.constant(np.asarray(onnx.helper.get_attribute_value(attribute), dtype))
    raise UnsupportedError("the constant is no tensor of numbers")


def constant_of_shape(node: NodeView) -> str:
    extents = tuple(int(extent) for extent in node.array(0).reshape(-1))
    if any(extent < 1 for extent in extents):
        raise UnsupportedError("the result has no elements")
    tensor = node.tensor("value")
    array = np.zeros(1, np.float32) if tensor is None else tensor_array(tensor)
    if array.size != 1:
        raise node.error(f"its value must be a single element, but has shape {array.shape}")
    value = first(array)
    return node.constant(splat(value, extents))


def shape_of(node: NodeView) -> str:
    extents = node.value(0).shape
    rank = len(extents)
    start, end, _ = slice(node.integer("start", 0), node.integer("end", rank)).indices(rank)
    return node.constant(np.asarray(extents[start:end], np.int64))


def size_of(node: NodeView) -> str:
    return node.constant(np.asarray(math.prod(node.value(0).shape), np.int64))


def reshape(node: NodeView) -> str:
    wanted = node.integers_at(1, "shape")
    if wanted is None:
        raise node.error("the new shape is missing")
    old = node.value(0).shape
    keep = not node.integer("allowzero", 0)
    if any(e == 0 and keep and d >= len(old) for d, e in enumerate(wanted)):
        raise node.error(f"shape {wanted} keeps a dimension that {old} does not have")
    extents = [old[d] if e == 0 and keep else e for d, e in enumerate(wanted)]
    known = math.prod(e for e in extents if e != -1)
    if extents.count(-1) == 1 and known > 0 and math.prod(old) % known == 0:
        extents[extents.index(-1)] = math.prod(old) // known
    if min(extents, default=1) < 1 or math.prod(extents) != math.prod(old):
        raise node.error(f"cannot reshape {old} to {wanted}")
    return node.apply(topi.reshape, node.input(0), shape=tuple(extents))


def flatten(node: NodeView) -> str:
    old = node.value(0).shape
    axis = node.integer("axis", 1)
    if not -len(old) <= axis <= len(old):
        raise node.error(f"axis {axis} is not among the {len(old)} dimensions of its input")
    cut = axis + len(old) if axis < 0 else axis
    return node.apply(topi.reshape, node.input(0), shape=(math.prod(old[:cut]), math.prod(old[cut:])))


def squeeze(node: NodeView) -> str:
    old = node.value(0).shape
    axes = node.integers_at(1, "axes")
    gone = {d for d, e in enumerate(old) if e == 1} if axes is None else {a + len(old) if a < 0 else a for a in axes}
    if any(not 0 <= d < len(old) or old[d] != 1 for d in gone):
        raise node.error(f"cannot squeeze dimensions {axes} of {old}: each must be there and have extent 1")
    return node.apply(topi.reshape, node.input(0), shape=tuple(e for d, e in enumerate(old) if d not in gone))


def unsqueeze(node: NodeView) -> str:
    old = node.value(0).shape
    axes = node.integers_at(1, "axes") or ()
    rank = len(old) + len(axes)
    fresh = {a + rank if a < 0 else a for a in axes}
    if len(fresh) != len(axes) or any(not 0 <= d < rank for d in fresh):
        raise node.error(f"axes {axes} are not distinct dimensions of a result with {rank}")
    rest = iter(old)
    return node.apply(topi.reshape, node.input(0), shape=tuple(1 if d in fresh else next(rest) for d in range(rank)))


def transpose(node: NodeView) -> str:
    rank = len(node.value(0).shape)
    axes = node.integers("perm") or tuple(reversed(range(rank)))
    old = node.value(0).shape
    moved = [a for a in axes if 0 <= a < rank and old[a] > 1]
    if sorted(axes) == list(range(rank)) and moved == sorted(moved):
        return node.apply(topi.reshape, node.input(0), shape=tuple(old[a] for a in axes))
    return node.apply(topi.transpose, node.input(0), axes=axes)


def concat(node: NodeView) -> str:
    given = [node.input(position) for position in range(len(node.inputs))]
    inputs = [name for name in given if 0 not in node.builder.value(name).shape]
    if not inputs:
        return _empty_concat(node, given)
    return inputs[0] if len(inputs) == 1 else node.apply(topi.concat, *inputs, axis=node.integer("axis", 1))


def _empty_concat(node: NodeView, inputs: Sequence[str]) -> str:
    """Tensors without elements in a row: they have none together, but a shape."""
    shapes = [node.builder.value(name).shape for name in inputs]
    axis, first = node.integer("axis", 1), shapes[0]
    at = axis + len(first) if axis < 0 else axis
    if any(len(s) != len(first) or not 0 <= at < len(s) or s[:at] + s[at + 1 :] != first[:at] + first[at + 1 :] for s in shapes):
        raise node.error(f"shapes {shapes} do not fit together along dimension {axis}")
    dtype = dtypes.NUMPY[node.builder.value(inputs[0]).dtype]
    return node.constant(np.empty((*first[:at], sum(s[at] for s in shapes), *first[at + 1 :]), dtype))


def split(node: NodeView) -> tuple[str, ...]:
    old = node.value(0).shape
    axis = node.integer("axis", 0)
    if not -len(old) <= axis < len(old):
        raise node.error(f"axis {axis} is not among the {len(old)} dimensions of its input")
    axis %= len(old)
    parts = len(node.proto.output)
    sizes = node.integers_at(1, "split")
    if sizes is None:
        most = -(-old[axis] // parts)
        sizes = (*(most,) * (parts - 1), old[axis] - most * (parts - 1))
    if len(sizes) != parts or sum(sizes) != old[axis]:
        raise node.error(f"sizes {sizes} do not split {old[axis]} elements into {parts} parts")
    return tuple(cut(node, node.input(0), axis, end - size, size) for size, end in zip(sizes, accumulate(sizes), strict=True))


def cut(node: NodeView, name: str, axis: int, start: int, count: int) -> str:
    """``count`` elements from ``start`` on along one dimension."""
    value = node.builder.value(name)
    old = value.shape
    if axis >= len(old) or not 0 <= start <= start + count <= old[axis]:
        raise node.error(f"there are no elements {start} to {start + count} along dimension {axis} of {old}")
    if count == old[axis]:
        return name
    if not count:
        return node.constant(np.empty((*old[:axis], 0, *old[axis + 1 :]), dtypes.NUMPY[value.dtype]))
    return node.apply(
        topi.strided_slice,
        name,
        starts=tuple(start if d == axis else 0 for d in range(len(old))),
        counts=tuple(count if d == axis else e for d, e in enumerate(old)),
        steps=(1,) * len(old),
    )


def strided_slice(node: NodeView) -> str:
    old = node.value(0).shape
    starts, ends = node.integers_at(1, "starts"), node.integers_at(2, "ends")
    if starts is None or ends is None:
        raise node.error("starts and ends are missing")
    axes = node.integers_at(3, "axes") or tuple(range(len(starts)))
    steps = node.integers_at(4, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or any(not -len(old) <= a < len(old) for a in axes) or 0 in steps:
        raise node.error(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit the shape {old}")
    ranges = [range(extent) for extent in old]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        begin, stop, stride = slice(start, end, step).indices(old[axis])
        # A negative stop beyond the first element is numpy's -1, which a range takes as it is.
        ranges[axis] = range(begin, stop, stride)
    if any(not taken for taken in ranges):
        raise UnsupportedError("the result has no elements")
    if all(taken == range(extent) for taken, extent in zip(ranges, old, strict=True)):
        return node.input(0)
    return node.apply(
        topi.strided_slice,
        node.input(0),
        starts=tuple(taken.start for taken in ranges),
        counts=tuple(len(taken) for taken in ranges),
        steps=tuple(taken.step if len(taken) > 1 else 1 for taken in ranges),
    )


def convert_pad(node: NodeView) -> str:
    rank = len(node.value(0).shape)
    pads = node.integers_at(1, "pads")
    axes = node.integers_at(3, "axes") or tuple(range(rank))
    mode = node.text("mode", "constant")
    if pads is None or len(pads) != 2 * len(axes) or any(not -rank <= a < rank for a in axes):
        raise node.error(f"pads {pads} are not two numbers for each of the dimensions {axes} of {rank}")
    if mode not in [known.value for known in PadMode]:
        raise node.error(f"mode {mode!r} is unknown")
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[position + len(axes)]
    if not any(before) and not any(after):
        return node.input(0)
    if min(e + b + a for e, b, a in zip(node.value(0).shape, before, after, strict=True)) == 0:
        raise UnsupportedError("the result has no elements")
    value = node.scalar(2).item() if node.has(2) else node.number("value", 0.0)
    if not dtypes.is_float(node.value(0).dtype):
        value = int(value)
    return node.apply(pad, node.input(0), before=tuple(before), after=tuple(after), value=value, mode=PadMode(mode))


def gather(node: NodeView) -> str:
    old = node.value(0).shape
    axis = node.integer("axis", 0)
    indices = node.builder.array(node.input(1))
    if indices is not None and indices.size and -len(old) <= axis < len(old) and indices.size <= old[axis]:
        d = axis % len(old)
        flat = [int(i) % old[d] for i in indices.reshape(-1) if -old[d] <= i < old[d]]
        if len(flat) == indices.size and flat == list(range(flat[0], flat[0] + len(flat))):
            # Neighbours in a row: a slice, which may need no kernel at all.
            run = node.input(0) if len(flat) == old[d] else cut(node, node.input(0), d, flat[0], len(flat))
            return node.apply(topi.reshape, run, shape=(*old[:d], *indices.shape, *old[d + 1 :]))
    return node.apply(topi.gather, node.input(0), node.input(1), axis=node.integer("axis", 0))


def expand(node: NodeView) -> str:
    wanted = tuple(int(e) for e in node.array(1).reshape(-1))
    full = broadcast_shape(node.value(0).shape, wanted)
    return node.input(0) if full == node.value(0).shape else node.apply(topi.broadcast_to, node.input(0), shape=wanted)


def tile(node: NodeView) -> str:
    repeats = node.integers_at(1, "repeats") or ()
    if len(repeats) != len(node.value(0).shape) or min(repeats, default=1) < 1:
        raise node.error(f"repeats {repeats} must be a positive count for each dimension of {node.value(0).shape}")
    return node.apply(topi.tile, node.input(0), repeats=repeats)


def depth_to_space(node: NodeView) -> str:
    n, c, h, w = _four(node)
    b = node.integer("blocksize", 1)
    if b < 1 or c % (b * b):
        raise node.error(f"blocks of {b} do not divide {c} channels")
    depth_first = node.text("mode", "DCR") == "DCR"
    split_shape = (n, b, b, c // (b * b), h, w) if depth_first else (n, c // (b * b), b, b, h, w)
    parts = node.apply(topi.reshape, node.input(0), shape=split_shape)
    moved = node.apply(topi.transpose, parts, axes=(0, 3, 4, 1, 5, 2) if depth_first else (0, 1, 4, 2, 5, 3))
    return node.apply(topi.reshape, moved, shape=(n, c // (b * b), h * b, w * b))


def space_to_depth(node: NodeView) -> str:
    n, c, h, w = _four(node)
    b = node.integer("blocksize", 1)
    if b < 1 or h % b or w % b:
        raise node.error(f"blocks of {b} do not divide {h} x {w}")
    parts = node.apply(topi.reshape, node.input(0), shape=(n, c, h // b, b, w // b, b))
    depth_first = node.text("mode", "DCR") == "DCR"
    moved = node.apply(topi.transpose, parts, axes=(0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4))
    return node.apply(topi.reshape, moved, shape=(n, c * b * b, h // b, w // b))


def _four(node: NodeView) -> tuple[int, int, int, int]:
    shape = node.value(0).shape
    if len(shape) != 4:
        raise node.error(f"it needs four dimensions (n, c, h, w), not {shape}")
    return shape[0], shape[1], shape[2], shape[3]
