"""Attention with its projections, masks and caches as onnxruntime has it, and positions that turn."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.writer import Writer
from ansorlite.te import dtypes


def attention(w: Writer) -> None:
    """Of one sequence, with the weights of its projections."""
    w.refuse("do_rotary", "past_present_share_buffer")
    _self_attention(w, w("MatMul", w.input(0), w.input(1)), mask=3, past=4, bias=5)


def quantized_attention(w: Writer) -> None:
    """The same, of bytes."""
    w.refuse("do_rotary", "past_present_share_buffer")
    data = w("DequantizeLinear", w.input(0), w.input(3), w.input(6))
    weights = w("DequantizeLinear", w.input(1), w.input(4), w.input(7), axis=1)
    _self_attention(w, w("MatMul", data, weights), mask=5, past=8, bias=None)


def _self_attention(w: Writer, projected: str, mask: int, past: int, bias: int | None) -> None:
    if w.has(2):
        projected = w("Add", projected, w.input(2))
    heads = w.count("num_heads")
    width = w.shape(1, 2)[1]
    sizes = w.integers("qkv_hidden_sizes") or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width or any(size < 1 or size % heads for size in sizes):
        raise w.error(f"its weights have {width} columns, which are no queries, keys and values of {heads} heads")
    parts = w.several("Split", [projected, w.constant(np.array(sizes, np.int64))], 3, axis=-1)
    query, key, value = (by_heads(w, part, heads) for part in parts)
    before = 0
    if w.has(past):
        before = w.shape(past, 5)[3]
        key, value = (
            w("Concat", w("Gather", w.input(past), w.constant(np.int64(which)), axis=0), fresh, axis=2)
            for which, fresh in enumerate((key, value))
        )
    if w.wants(1):
        w.give(1, w("Concat", w.unsqueezed(key, 0), w.unsqueezed(value, 0), axis=0))
    length = w.shape(0, 3)[1]
    w.give(0, _attended(w, (query, key, value), sizes[0] // heads, (length, before + length, before), mask, bias))


def multi_head_attention(w: Writer) -> None:
    """Of a query, keys and values that are projected already."""
    query = w.input(0)
    if len(w.value(0).shape) != 3 or not w.has(1) or not w.has(2):
        raise UnsupportedError("queries, keys and values in one array")
    heads, shape = w.count("num_heads"), w.shape(0, 3)
    together = len(w.shape(1, 3, 4)) == 3
    parts = [query, w.input(1), w.input(2)]
    if w.has(3):
        widths = [shape[2], *(w.shape(position, 3)[2] for position in (1, 2))] if together else [shape[2]]
        bounds = np.cumsum([0, *widths])
        for part in range(len(widths)):
            parts[part] = w("Add", parts[part], w.cut(w.input(3), int(bounds[part]), int(bounds[part + 1])))
    query = by_heads(w, parts[0], heads)
    key, value = (by_heads(w, part, heads) if together else part for part in parts[1:])
    before, length = 0, w.value(1).shape[1 if together else 2]
    if w.has(6):
        before = w.shape(6, 4)[2]
        key, value = (w("Concat", w.input(p), fresh, axis=2) for p, fresh in ((6, key), (7, value)))
    w.give(1, key)
    w.give(2, value)
    if w.wants(3) or w.has(8) or w.has(9):
        raise UnsupportedError("its products as a result, and caches in an order of their own")
    w.give(0, _attended(w, (query, key, value), shape[2] // heads, (shape[1], before + length, before), 4, 5))


def by_heads(w: Writer, x: str, heads: int) -> str:
    """(batch, length, heads * size) → (batch, heads, length, size)."""
    return w("Transpose", w.reshaped(x, (0, 0, heads, -1)), perm=[0, 2, 1, 3])


def _attended(
    w: Writer, parts: tuple[str, str, str], size: int, lengths: tuple[int, int, int], mask: int, bias: int | None
) -> str:
    """(batch, queries, heads * size).

    Args:
        parts: queries, keys and values, by heads.
        lengths: of queries, of keys, and of those keys that are before the first query.
        mask, bias: positions of inputs.
    """
    query, key, value = parts
    scale = w.number("scale", 0) or 1 / math.sqrt(max(1, size))
    kind = next((p for p in range(4) if w.has(p) and dtypes.is_float(w.value(p).dtype)), None)
    if kind is None:
        raise w.error("none of its inputs are floats")
    scores = w("Mul", w("MatMul", query, w("Transpose", key, perm=[0, 1, 3, 2])), w.scalar(scale, like=kind))
    hidden = w.scalar(w.number("mask_filter_value", -10000.0), like=kind)
    nothing = w.scalar(0, like=kind)
    if w.has(mask):
        scores = w("Add", scores, w("Where", _seen(w, mask, lengths[1]), nothing, hidden))
    if w.integer("unidirectional", 0):
        rows, columns = np.arange(lengths[0])[:, None] + lengths[2], np.arange(lengths[1])
        scores = w("Add", scores, w("Where", w.constant(columns <= rows), nothing, hidden))
    if bias is not None and w.has(bias):
        scores = w("Add", scores, w.input(bias))
    mixed = w("MatMul", w("Softmax", scores, axis=-1), value)
    return w.reshaped(w("Transpose", mixed, perm=[0, 2, 1, 3]), (0, 0, -1))


def _seen(w: Writer, mask: int, keys: int) -> str:
    """Which keys are seen, to be broadcast to (batch, heads, queries, keys)."""
    shape = w.value(mask).shape
    batch = w.value(0).shape[0]
    given = w.input(mask)
    if len(shape) == 1 and shape[0] in (batch, 2 * batch):
        places = w.constant(np.arange(keys, dtype=np.int32))
        ends = w.unsqueezed(w("Cast", w.cut(given, 0, batch), to=TensorProto.INT32), 1)
        seen = w("Less", places, ends)
        if shape[0] > batch:
            begins = w.unsqueezed(w("Cast", w.cut(given, batch, 2 * batch), to=TensorProto.INT32), 1)
            seen = w("And", seen, w("GreaterOrEqual", places, begins))
        return w.unsqueezed(seen, 1, 2)
    if len(shape) not in (2, 3) or shape[0] not in (1, batch) or shape[-1] != keys:
        raise UnsupportedError(f"a mask of shape {shape} for {keys} keys")
    seen = w("Cast", given, to=TensorProto.BOOL)
    return w.unsqueezed(seen, 1, 2) if len(shape) == 2 else w.unsqueezed(seen, 1)


def rotary_embedding(w: Writer) -> None:
    w.refuse("is_packed_batching")
    if w.number("scale", 1.0) != 1:
        raise UnsupportedError("its attribute 'scale'")
    shape, positions = w.shape(0, 3, 4), w.input(1)
    if w.value(1).shape in ((), (1,)):
        batch, length = shape[0], shape[1 if len(shape) == 3 else 2]
        rows = w("Add", w.reshaped(positions, (1, 1)), w.constant(np.arange(length, dtype=np.int64)[None]))
        positions = w("Expand", rows, w.constant(np.array([batch, length])))
    own = {name: w.attributes.get(name) for name in ("interleaved", "num_heads", "rotary_embedding_dim")}
    if not own["num_heads"] and len(shape) == 3:
        own["num_heads"] = shape[2] // max(1, 2 * w.shape(2, 2)[1])
    w.give(0, w("RotaryEmbedding", w.input(0), w.input(2), w.input(3), positions, **own))
