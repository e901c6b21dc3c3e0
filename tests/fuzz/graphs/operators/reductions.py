"""Reductions, running sums, softmax, and norms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.fuzz.graphs.draft import Draft, Made
from tests.fuzz.graphs.operators.elementwise import Maker
from tests.fuzz.graphs.values import FLOATS, NUMBERS

_REDUCED: Final = (*FLOATS, "int32", "int64", "uint32", "uint64")


def reduction(operator: str, dtypes: Sequence[str] = _REDUCED, axes_since: int = 18) -> Maker:
    """``axes_since``: the opset from which on the axes are an input."""

    def make(g: Draft) -> Made:
        x = g.pick(dtypes)
        attributes: dict[str, Any] = g.flags("keepdims")
        if g.opset < axes_since:
            if g.rank(x) and g.chance(0.8):
                attributes["axes"] = g.axes(x)
            return Made(operator, [x], attributes)
        attributes |= g.flags("noop_with_empty_axes") if g.chance(0.3) else {}
        if g.chance(0.15):
            return Made(operator, [x], attributes)
        return Made(operator, [x, g.parameter(g.axes(x, 0))], attributes)

    return make


def arg_extreme(operator: str) -> Maker:
    def make(g: Draft) -> Made:
        x = g.pick(NUMBERS, (1, 5))
        last = g.flags("select_last_index") if g.opset >= 12 else {}
        return Made(operator, [x], {"axis": g.axis(x, g.opset >= 11), **g.flags("keepdims"), **last})

    return make


def cumulative(operator: str) -> Maker:
    def make(g: Draft) -> Made:
        x = g.pick(_REDUCED, (1, 5))
        return Made(operator, [x, g.parameter(g.axis(x), g.choice(("int32", "int64")))], g.flags("exclusive", "reverse"))

    return make


def softmax(operator: str) -> Maker:
    def make(g: Draft) -> Made:
        x = g.pick(FLOATS, (1, 5))
        return Made(operator, [x], {"axis": g.axis(x, g.opset >= 11)} if g.chance(0.8) or g.rank(x) == 1 else {})

    return make


def batch_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (2, 5))
    channels, dtype = (g[x].shape[1],), g.dtype(x)
    rest = [g.exactly(channels, dtype) for _ in range(3)]
    attributes = g.numbers(epsilon=(1e-5, 1e-2))
    return Made("BatchNormalization", [x, *rest, g.fresh(dtype, channels, 0.1, 3)], attributes)


def layer_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (1, 5))
    axis = g.axis(x)
    shape = g[x].shape[axis:]
    inputs = [x, g.exactly(shape, g.dtype(x)), *([g.exactly(shape, g.dtype(x))] if g.chance(0.7) else [])]
    return Made("LayerNormalization", inputs, {"axis": axis, **g.numbers(epsilon=(1e-5, 1e-2))}, g.choice((1, 1, 2, 3)))


def rms_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (1, 5))
    axis = g.axis(x)
    return Made(
        "RMSNormalization", [x, g.exactly(g[x].shape[axis:], g.dtype(x))], {"axis": axis, **g.numbers(epsilon=(1e-5, 1e-2))}
    )


def instance_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (3, 5))
    channels = (g[x].shape[1],)
    return Made(
        "InstanceNormalization", [x, *(g.exactly(channels, g.dtype(x)) for _ in range(2))], g.numbers(epsilon=(1e-5, 1e-2))
    )


def group_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (3, 5))
    channels = g[x].shape[1]
    groups = g.choice([n for n in range(1, channels + 1) if channels % n == 0] or [1])
    size = (channels if g.opset >= 21 else groups,)
    return Made(
        "GroupNormalization",
        [x, *(g.exactly(size, g.dtype(x)) for _ in range(2))],
        {"num_groups": groups, **g.numbers(epsilon=(1e-5, 1e-2))},
    )


def lrn(g: Draft) -> Made:
    x = g.pick(FLOATS, (4, 4))
    return Made("LRN", [x], {"size": g.choice((1, 3, 5)), **g.numbers(alpha=(1e-4, 1), beta=(0.3, 1), bias=(0.5, 2))})


def lp_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (1, 5))
    return Made("LpNormalization", [x], {"axis": g.axis(x), "p": g.integer(1, 2)})


def mean_variance_normalization(g: Draft) -> Made:
    x = g.pick(FLOATS, (4, 4))
    return Made("MeanVarianceNormalization", [x], {"axes": sorted(axis % 4 for axis in g.axes(x))} if g.chance(0.7) else {})


REDUCTIONS: Final[Mapping[str, Maker]] = {
    "ArgMax": arg_extreme("ArgMax"),
    "ArgMin": arg_extreme("ArgMin"),
    "BatchNormalization": batch_normalization,
    "CumProd": cumulative("CumProd"),
    "CumSum": cumulative("CumSum"),
    "GroupNormalization": group_normalization,
    "Hardmax": softmax("Hardmax"),
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": softmax("LogSoftmax"),
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "RMSNormalization": rms_normalization,
    "ReduceL1": reduction("ReduceL1"),
    "ReduceL2": reduction("ReduceL2"),
    "ReduceLogSum": reduction("ReduceLogSum"),
    "ReduceLogSumExp": reduction("ReduceLogSumExp"),
    "ReduceMax": reduction("ReduceMax", (*_REDUCED, "uint8", "int8", "bool")),
    "ReduceMean": reduction("ReduceMean"),
    "ReduceMin": reduction("ReduceMin", (*_REDUCED, "uint8", "int8", "bool")),
    "ReduceProd": reduction("ReduceProd"),
    "ReduceSum": reduction("ReduceSum", axes_since=13),
    "ReduceSumSquare": reduction("ReduceSumSquare"),
    "Softmax": softmax("Softmax"),
}
