"""Quantised operators, attention, recurrent layers and losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.fuzz.graphs.draft import Draft, Made, NoFitError
from tests.fuzz.graphs.operators.contractions import window
from tests.fuzz.graphs.operators.elementwise import Maker
from tests.fuzz.graphs.values import BYTES, FLOATS

#: What weights do not exceed: with larger ones, onnxruntime's sums of bytes are wrong on processors without dot products of them.
_SMALL: Final = 64


def _scale(g: Draft, shape: tuple[int, ...] = (), dtype: str = "float32") -> str:
    return g.parameter(g.rng.uniform(0.02, 0.3, shape), dtype)


def _zero(g: Draft, dtype: str, shape: tuple[int, ...] = ()) -> str:
    low, high = {"uint8": (0, 20), "uint16": (0, 20), "int32": (0, 0)}.get(dtype, (-9, 9))
    return g.parameter(g.rng.integers(low, high + 1, shape), dtype)


def _bytes(g: Draft, dtype: str, shape: tuple[int, ...]) -> str:
    return g.fresh(dtype, shape, 0 if dtype == "uint8" else -_SMALL, _SMALL)


def quantize_linear(g: Draft) -> Made:
    x = g.pick(("float32", "float32", "float16"), (1, 4))
    dtype = g.choice(("uint8", "int8", *(("uint16", "int16") if g.opset >= 21 else ())))
    axis = g.axis(x)
    shape = (g[x].shape[axis],) if g.opset >= 13 and g.chance(0.4) else ()
    inputs = [x, _scale(g, shape, g.dtype(x)), *([_zero(g, dtype, shape)] if g.chance(0.8) else [])]
    return Made("QuantizeLinear", inputs, {"axis": axis} if g.opset >= 13 else {})


def dequantize_linear(g: Draft) -> Made:
    x = g.pick(("uint8", "int8", "int32", *(("uint16", "int16") if g.opset >= 21 else ())), (1, 4))
    axis = g.axis(x)
    shape = (g[x].shape[axis],) if g.opset >= 13 and g.chance(0.4) else ()
    zero = [_zero(g, g.dtype(x), shape)] if g.chance(0.8) and g.dtype(x) != "int32" else []
    dtype = g.choice(("float32", "float32", "float16")) if g.opset >= 19 else "float32"
    return Made("DequantizeLinear", [x, _scale(g, shape, dtype), *zero], {"axis": axis} if g.opset >= 13 else {})


def dynamic_quantize(g: Draft) -> Made:
    return Made("DynamicQuantizeLinear", [g.pick(("float32",), where=lambda a: a.size > 0)], outputs=3)


def matmul_integer(g: Draft) -> Made:
    a = g.pick(BYTES, (2, 3), low=0, high=_SMALL)
    b = _bytes(g, g.choice(BYTES), (g[a].shape[-1], g.integer(1, 8)))
    zeros = [_zero(g, g.dtype(name)) for name in (a, b)][: g.integer(0, 2)]
    return Made("MatMulInteger", [a, b, *zeros])


def qlinear_matmul(g: Draft) -> Made:
    a = g.pick(BYTES, (2, 3), low=0, high=_SMALL)
    kind = g.dtype(a)
    b = _bytes(g, g.choice(BYTES) if kind == "uint8" else "int8", (g[a].shape[-1], g.integer(1, 8)))
    inputs = [
        a,
        _scale(g),
        _zero(g, kind),
        b,
        _scale(g),
        _zero(g, g.dtype(b)),
        g.parameter(g.rng.uniform(0.3, 2), "float32"),
        _zero(g, kind),
    ]
    return Made("QLinearMatMul", inputs)


def _image(g: Draft) -> tuple[str, tuple[int, ...], int]:
    x = _bytes(g, "uint8", (g.integer(1, 2), g.choice((1, 2, 4)), *(g.integer(2, 7) for _ in range(2))))
    groups = g.choice((1, g[x].shape[1]))
    kernel = (g.integer(1, 3), g.integer(1, 3))
    if any(k > e for k, e in zip(kernel, g[x].shape[2:], strict=True)):
        raise NoFitError
    return x, kernel, groups


def conv_integer(g: Draft) -> Made:
    x, kernel, groups = _image(g)
    w = _bytes(g, g.choice(BYTES), (groups * g.integer(1, 3), g[x].shape[1] // groups, *kernel))
    zeros = [_zero(g, g.dtype(name)) for name in (x, w)][: g.integer(0, 2)]
    return Made("ConvInteger", [x, w, *zeros], {"group": groups, **window(g, g[x].shape[2:], kernel)})


def qlinear_conv(g: Draft) -> Made:
    x, kernel, groups = _image(g)
    w = _bytes(g, g.choice(BYTES), (groups * g.integer(1, 3), g[x].shape[1] // groups, *kernel))
    count = (g[w].shape[0],)
    scales = (_scale(g), _scale(g, g.choice(((), count))), g.parameter(g.rng.uniform(0.3, 2), "float32"))
    inputs = [
        x,
        scales[0],
        _zero(g, "uint8"),
        w,
        scales[1],
        _zero(g, g.dtype(w), g[scales[1]].shape),
        scales[2],
        _zero(g, "uint8"),
    ]
    if g.dtype(w) == "int8" and g[scales[1]].shape:
        inputs[5] = g.parameter(g.rng.integers(0, 1, count), "int8")
    bias = [g.parameter(g.rng.integers(-900, 900, count), "int32")] if g.chance() else []
    return Made("QLinearConv", [*inputs, *bias], {"group": groups, **window(g, g[x].shape[2:], kernel)})


def recurrent(operator: str, gates: int) -> Maker:
    """RNN, GRU or LSTM; without lengths of its sequences."""

    def make(g: Draft) -> Made:
        x = g.pick(("float32",), (3, 3))
        batch, size = g[x].shape[1:]
        if 0 in g[x].shape:
            raise NoFitError
        hidden = g.integer(1, 4)
        direction = g.choice(("forward", "reverse", "bidirectional"))
        ways = 2 if direction == "bidirectional" else 1
        inputs = [
            x,
            g.fresh("float32", (ways, gates * hidden, size), -1, 1),
            g.fresh("float32", (ways, gates * hidden, hidden), -1, 1),
        ]
        states = 2 if operator == "LSTM" else 1
        if g.chance(0.6):
            inputs.append(g.fresh("float32", (ways, 2 * gates * hidden), -1, 1))
            if g.chance():
                inputs += ["", *(g.fresh("float32", (ways, batch, hidden), -1, 1) for _ in range(states))]
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
        if operator == "GRU":
            attributes |= g.flags("linear_before_reset")
        return Made(operator, inputs, attributes, states + 1)

    return make


def attention(g: Draft) -> Made:
    batch, heads, length, keys, size = g.integer(1, 2), g.integer(1, 2), g.integer(1, 4), g.integer(1, 5), g.choice((2, 4))
    dtype = g.choice(("float32", "float32", "float16"))
    q = g.exactly((batch, heads, length, size), dtype)
    k, v = (g.exactly((batch, heads, keys, size), dtype) for _ in range(2))
    mask = [g.fresh(g.choice(("bool", dtype)), (length, keys), -2, 2)] if g.chance(0.3) else []
    return Made("Attention", [q, k, v, *mask], {**g.flags("is_causal"), **g.numbers(scale=(0.2, 1), softcap=(1, 4))})


def loss(g: Draft) -> Made:
    x = g.pick(("float32", "float64"), (2, 4))
    shape = g[x].shape
    if 0 in shape:
        raise NoFitError
    labels = g.fresh("int64", (shape[0], *shape[2:]), 0, shape[1] - 1)
    weights = [g.fresh(g.dtype(x), (shape[1],), 0.1, 2)] if g.chance() else []
    operator = g.choice(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"))
    return Made(operator, [x, labels, *weights], {"reduction": g.choice(("none", "sum", "mean"))})


def determinant(g: Draft) -> Made:
    return Made("Det", [g.pick(FLOATS, where=lambda a: a.ndim >= 2 and a.shape[-1] == a.shape[-2] > 0)])


NETWORKS: Final[Mapping[str, Maker]] = {
    "Attention": attention,
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize_linear,
    "Det": determinant,
    "DynamicQuantizeLinear": dynamic_quantize,
    "GRU": recurrent("GRU", 3),
    "LSTM": recurrent("LSTM", 4),
    "Loss": loss,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize_linear,
    "RNN": recurrent("RNN", 1),
}
