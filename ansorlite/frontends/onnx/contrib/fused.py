"""What onnxruntime's optimiser fuses: activations, products and convolutions with them, normalisations of sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorlite.frontends.onnx.node import UnsupportedError
from ansorlite.frontends.onnx.writer import Writer


def gelu(w: Writer) -> None:
    w.give(0, w("Gelu", w.input(0)))


def bias_gelu(w: Writer) -> None:
    w.give(0, w("Gelu", w("Add", w.input(0), w.input(1))))


def fast_gelu(w: Writer) -> None:
    x = w("Add", w.input(0), w.input(1)) if w.has(1) else w.input(0)
    w.give(0, w("Gelu", x, approximate="tanh"))


def quick_gelu(w: Writer) -> None:
    scaled = w("Mul", w.input(0), w.scalar(w.number("alpha", 1.702)))
    w.give(0, w("Mul", w.input(0), w("Sigmoid", scaled)))


def fused_matmul(w: Writer) -> None:
    w.refuse("transBatchA", "transBatchB")
    factors = [_transposed(w, 0, "transA"), _transposed(w, 1, "transB")]
    product, alpha = w("MatMul", *factors), w.number("alpha", 1.0)
    w.give(0, product if alpha == 1 else w("Mul", product, w.scalar(alpha)))


def _transposed(w: Writer, position: int, attribute: str) -> str:
    rank = len(w.value(position).shape)
    if not w.integer(attribute, 0) or rank < 2:
        return w.input(position)
    return w("Transpose", w.input(position), perm=[*range(rank - 2), rank - 1, rank - 2])


def fused_gemm(w: Writer) -> None:
    own = {name: w.attributes.get(name) for name in ("alpha", "beta", "transA", "transB")}
    product = w("Gemm", *(w.input(position) for position in range(3) if w.has(position)), **own)
    numbers = [w.number(name, 0) for name in ("activation_alpha", "activation_beta") if name in w.attributes]
    w.give(0, _activated(w, product, numbers))


def fused_conv(w: Writer) -> None:
    own = {name: value for name, value in w.attributes.items() if not name.startswith("activation")}
    total = w("Conv", *(w.input(position) for position in range(3) if w.has(position)), **own)
    if w.has(3):
        total = w("Add", total, w.input(3))
    w.give(0, _activated(w, total, w.numbers("activation_params") or ()))


def _activated(w: Writer, x: str, numbers: Sequence[float]) -> str:
    kind = w.text("activation", "")
    if kind in ("", "Relu", "Sigmoid", "Tanh", "Softsign"):
        return w(kind, x) if kind else x
    if kind == "LeakyRelu":
        return w(kind, x, alpha=next(iter(numbers), None))
    if kind == "HardSigmoid":
        return w(kind, x, **dict(zip(("alpha", "beta"), numbers, strict=False)))
    if kind == "Clip" and len(numbers) == 2:
        return w(kind, x, *map(w.scalar, numbers))
    raise UnsupportedError(f"its activation {kind!r}")


def skip_layer_normalization(w: Writer) -> None:
    total = _skipped(w, bias=4)
    beta = [w.input(3)] if w.has(3) else []
    w.give(0, w("LayerNormalization", total, w.input(2), *beta, axis=-1, epsilon=w.number("epsilon", 1e-12)))


def skip_simplified_layer_normalization(w: Writer) -> None:
    total = _skipped(w, bias=3)
    w.give(0, w("RMSNormalization", total, w.input(2), axis=-1, epsilon=w.number("epsilon", 1e-12)))


def _skipped(w: Writer, bias: int) -> str:
    if w.wants(1) or w.wants(2):
        raise UnsupportedError("its mean and its deviation as results")
    total = w("Add", w.input(0), w.input(1))
    if w.has(bias):
        total = w("Add", total, w.input(bias))
    w.give(3, total)
    return total


def simplified_layer_normalization(w: Writer) -> None:
    if w.wants(1):
        raise UnsupportedError("its deviation as a result")
    own = {name: w.attributes.get(name) for name in ("axis", "epsilon", "stash_type")}
    w.give(0, w("RMSNormalization", w.input(0), w.input(1), **own))


def embed_layer_normalization(w: Writer) -> None:
    _embedded(w, [w.input(position) for position in range(2, 7)], places=8)


def quantized_embed_layer_normalization(w: Writer) -> None:
    """The same, with tables in bytes; their scales and zero points come after all of them."""
    tables = [w("DequantizeLinear", *map(w.input, (p, p + 6, p + 11))) if w.has(p) else "" for p in range(2, 7)]
    _embedded(w, tables, places=None)


def _embedded(w: Writer, tables: list[str], places: int | None) -> None:
    """Rows of three tables for each word, added and normalised.

    Args:
        tables: of words, places and segments; and the normalisation's scale and shift.
        places: the position of an input with the words' places.
    """
    batch, length = w.shape(0, 2)
    words, positions, segments, gamma, beta = tables
    total = w("Gather", words, w.input(0))
    given = places is not None and w.has(places)
    rows = w("Gather", positions, w.input(places or 0)) if given else w.cut(positions, 0, length)
    total = w("Add", total, rows)
    if w.has(1) and segments:
        total = w("Add", total, w("Gather", segments, w.input(1)))
    if places is not None:
        w.give(2, total)
    epsilon = w.number("epsilon", 1e-12)
    w.give(0, w("LayerNormalization", total, gamma, beta, axis=-1, epsilon=epsilon))
    if not w.wants(1):
        return
    if w.has(7):
        w.give(1, w("ReduceSum", w.input(7), w.constant(np.array([1])), keepdims=0))
    else:
        w.give(1, w.constant(np.zeros(batch, np.int32)))
