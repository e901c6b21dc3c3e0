"""Attention of groups of heads that share keys and values, with caches: what exporters of language models write."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ansorlite.frontends.onnx.contrib.attention import by_heads
from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.writer import Writer


def group_query_attention(w: Writer) -> None:
    """Of (batch, length, heads * size). Caches have room for all that is to come, or for what was and what comes.

    How much of its cache each sequence of a batch has filled is data: ``seqlens_k``, less one than with what comes.
    """
    w.refuse("k_quant_type", "v_quant_type", "kv_cache_bit_width", "qk_output")
    if w.wants(3) or any(map(w.has, range(12, 16))):
        raise UnsupportedError("its products as a result, and what comes after its input 11")
    heads, groups = w.count("num_heads"), w.count("kv_num_heads")
    if heads % groups:
        raise w.error(f"its {heads} heads are no multiple of {groups}")
    batch, length, width = w.shape(0, 3)
    size = width // (heads if w.has(1) else heads + 2 * groups)
    query, key, value = _parts(w, heads, groups)
    ends = w("Cast", w.reshaped(w.input(5), (batch,)), to=TensorProto.INT64)
    begins = w("Max", w("Add", ends, w.constant(np.int64(1 - length))), w.constant(np.int64(0)))
    rows = w("Add", w.unsqueezed(begins, 1), w.constant(np.arange(length, dtype=np.int64)[None]))
    if w.integer("do_rotary", 0):
        query, key = (_turned(w, part, count, size, rows) for part, count in ((query, heads), (key, groups)))
    query, key, value = (by_heads(w, part, count) for part, count in ((query, heads), (key, groups), (value, groups)))
    total = int(w.known(6).reshape(-1)[0])
    places = max(total, w.shape(3, 4)[2] if w.has(3) else 0)
    key, value = (_cached(w, part, past, begins, places) for part, past in ((key, 3), (value, 4)))
    w.give(1, key)
    w.give(2, value)
    scale = w.number("scale", 0) or 1 / math.sqrt(size)
    # Queries of heads that share keys, one after another: no key is repeated.
    query = w.reshaped(query, (batch, groups, heads // groups * length, size))
    scores = w("Mul", w("MatMul", query, w("Transpose", key, perm=[0, 1, 3, 2])), w.scalar(scale))
    scores = w.reshaped(scores, (batch, heads, length, places))
    cap = w.number("softcap", 0)
    if cap:
        scores = w("Mul", w("Tanh", w("Mul", scores, w.scalar(1 / cap))), w.scalar(cap))
    if w.has(10):
        scores = w("Add", scores, _bias(w, places))
    scores = w("Where", _seen(w, rows, places), scores, w.scalar(-math.inf))
    weights = w.reshaped(_softmax(w, scores, heads), (batch, groups, heads // groups * length, places))
    mixed = w.reshaped(w("MatMul", weights, value), (batch, heads, length, size))
    w.give(0, w.reshaped(w("Transpose", mixed, perm=[0, 2, 1, 3]), (batch, length, heads * size)))


def _parts(w: Writer, heads: int, groups: int) -> list[str]:
    """Queries, keys and values, (batch, length, heads * size) each; they may be given as one array."""
    if w.has(1) != w.has(2):
        raise w.error("of its keys and values only one is given")
    width = w.shape(0, 3)[2]
    if w.has(1):
        return [w.input(position) for position in range(3)]
    if width % (heads + 2 * groups):
        raise w.error(f"{width} elements are no queries, keys and values of {heads} and {groups} heads")
    size = width // (heads + 2 * groups)
    sizes = np.array([heads * size, groups * size, groups * size])
    return w.several("Split", [w.input(0), w.constant(sizes)], 3, axis=-1)


def _turned(w: Writer, x: str, heads: int, size: int, rows: str) -> str:
    """With rotary positions: those of its places, or those that are given."""
    positions = w.input(9) if w.has(9) else rows
    width = 2 * w.shape(7, 2)[1]
    own = {"interleaved": w.integer("rotary_interleaved", 0), "num_heads": heads}
    part = width if width < size else None
    return w("RotaryEmbedding", x, w.input(7), w.input(8), positions, rotary_embedding_dim=part, **own)


def _cached(w: Writer, x: str, past: int, begins: str, places: int) -> str:
    """(batch, heads, places, size): what was and what is new, which begins at the first place that is free."""
    if not w.has(past) or not w.shape(past, 4)[2]:
        return _filled_up(w, x, 2, places - w.shape(0, 3)[1])
    before = _filled_up(w, w.input(past), 2, places - w.shape(past, 4)[2])
    return w("TensorScatter", before, x, begins, axis=2)


def _bias(w: Writer, places: int) -> str:
    """What is added to scores, for places that there are beyond it, too."""
    given = w.shape(10, 4)[3]
    return w.cut(w.input(10), 0, places, 3) if given >= places else _filled_up(w, w.input(10), 3, places - given)


def _filled_up(w: Writer, x: str, axis: int, places: int) -> str:
    """``x``, of four dimensions, with so many zeros behind."""
    if not places:
        return x
    pads = np.zeros(8, np.int64)
    pads[4 + axis] = places
    return w("Pad", x, w.constant(pads), w.scalar(0))


def _seen(w: Writer, rows: str, places: int) -> str:
    """Which places a query sees, to be broadcast to (batch, heads, length, places): itself and those before, or some of these."""
    own = w.unsqueezed(rows, 1, 3)
    columns = w.constant(np.arange(places, dtype=np.int64))
    seen = w("LessOrEqual", columns, own)
    window = w.integer("local_window_size", -1)
    if window > 0:
        seen = w("And", seen, w("Greater", columns, w("Sub", own, w.constant(np.int64(window)))))
    return seen


def _softmax(w: Writer, scores: str, heads: int) -> str:
    """Over places, and over one beside them of which nothing is mixed in, if there is one."""
    if not w.has(11) and not w.integer("smooth_softmax", 0):
        return w("Softmax", scores, axis=-1)
    sink = w.reshaped(w.input(11), (1, heads, 1, 1)) if w.has(11) else w.scalar(0)
    top = w("Max", w("ReduceMax", scores, w.constant(np.array([-1])), keepdims=1), sink)
    powers = w("Exp", w("Sub", scores, top))
    total = w("Add", w("ReduceSum", powers, w.constant(np.array([-1])), keepdims=1), w("Exp", w("Sub", sink, top)))
    return w("Div", powers, total)
