"""What ONNX leaves open, and what the witnesses get wrong: nodes on such inputs are not drawn, or another witness is asked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import helper
from packaging.version import Version

from tests.fuzz.graphs.oracle import Witness
from tests.fuzz.graphs.values import FLOATS, INTEGERS, SIGNED, Array

#: Inputs of a node; ``None`` where one is left out.
Inputs: TypeAlias = Sequence[Array | None]


@dataclass(frozen=True)
class Node:
    """What is asked about.

    Attributes:
        results: how many it is to give.
    """

    operator: str
    attributes: Mapping[str, Any]
    opset: int
    inputs: Inputs
    results: int = 1

    @staticmethod
    def of(node: onnx.NodeProto, opset: int, inputs: Inputs) -> Node:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        return Node(node.op_type, attributes, opset, inputs, len(node.output))

    @property
    def given(self) -> list[Array]:
        return [array for array in self.inputs if array is not None]

    @property
    def data(self) -> Array:
        return self.given[0]

    def text(self, name: str) -> str:
        return bytes(self.attributes.get(name, b"")).decode()


Condition: TypeAlias = Callable[[Node], bool]


# What nobody says ----------------------------------------------------------------------------------------------------


def _floats(node: Node) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    return [array.astype(np.float64) for array in node.given if array.dtype.name in FLOATS]


def _any_nan(node: Node) -> bool:
    """Where NaN stands in the order of numbers."""
    return any(bool(np.isnan(array).any()) for array in _floats(node))


def _not_finite(node: Node) -> bool:
    return not all(bool(np.isfinite(array).all()) for array in _floats(node))


def _infinite(node: Node) -> bool:
    return any(bool(np.isinf(array).any()) for array in _floats(node))


def _division(node: Node) -> bool:
    """Of integers by 0, and of the least by -1."""
    a, b = node.given[:2]
    if a.dtype.name in FLOATS:
        return False
    return bool((b == 0).any()) or (a.dtype.name in SIGNED and bool((b == -1).any()) and bool((a == np.iinfo(a.dtype).min).any()))


def _cast(node: Node) -> bool:
    """Of floats that an integer cannot hold."""
    x = node.data
    to = node.given[1].dtype if len(node.given) > 1 else helper.tensor_dtype_to_np_dtype(node.attributes["to"])
    if x.dtype.name not in FLOATS or to.name not in INTEGERS:
        return False
    with np.errstate(all="ignore"):
        values, info = np.trunc(x.astype(np.float64)), np.iinfo(to)
        return not bool(np.all((values >= info.min) & (values < float(info.max))))


def _power(node: Node) -> bool:
    """Of an integer, where the result is no number that fits."""
    base, exponent = node.given
    if base.dtype.name in FLOATS:
        return False
    try:
        with np.errstate(all="ignore"):
            powers = np.power(base.astype(np.float64), exponent.astype(np.float64))
    except ValueError:
        return True  # of extents that do not broadcast
    return not bool((np.abs(powers) < 2**31).all())


def _overflow(node: Node) -> bool:
    """Whether a sum, a product or a square of integers goes round: one witness stops at the ends."""
    x = node.data
    if x.dtype.name in FLOATS or not x.size:
        return False
    size = np.maximum(np.abs(x.astype(np.float64)), 1)
    bits = float(np.log2(size).sum()) if node.operator in ("ReduceProd", "CumProd") else math.log2(float((size**2).sum()))
    return bits >= (31 if x.dtype.itemsize == 4 else 52)


def _constant_rows(node: Node) -> bool:
    """A mean of squares less the square of a mean, where little is left of it."""
    x = node.data.astype(np.float64)
    axes = tuple(node.attributes.get("axes", (0, 2, 3)))
    with np.errstate(all="ignore"):
        return not bool(np.all(x.var(axis=axes) > 1e-2 * (x * x).mean(axis=axes)))


def _no_range(node: Node) -> bool:
    """Without two numbers on either side of 0 there is no scale."""
    x = node.data.astype(np.float64)
    return not np.isfinite(x).all() or max(x.max(), 0.0) - min(x.min(), 0.0) < 1e-3


def _lengths(node: Node) -> bool:
    """More or fewer lengths than sequences, or longer ones: one witness does not mind."""
    axis = int(node.attributes["batch_axis"])
    lengths = node.given[1]
    return lengths.shape[0] != node.data.shape[axis] or bool((lengths > node.data.shape[1 - axis]).any())


def _scattered(node: Node) -> bool:
    """More or fewer updates than places: one witness does not mind."""
    data, indices, updates = node.given
    if node.operator == "ScatterElements":
        return indices.shape != updates.shape
    return updates.shape != (*indices.shape[:-1], *data.shape[indices.shape[-1] :])


def _batches(node: Node) -> bool:
    """Batches of indices, and others of data: one witness does not mind."""
    count = int(node.attributes.get("batch_dims", 0))
    data, indices = node.given
    return data.shape[:count] != indices.shape[:count]


def _outgrown(node: Node) -> bool:
    """A window that does not fit the data: one witness rounds a number of windows between 0 and 1 up."""
    kernel = node.attributes["kernel_shape"]
    rank = len(kernel)
    pads, dilations = node.attributes.get("pads", (0,) * (2 * rank)), node.attributes.get("dilations", (1,) * rank)
    return not node.text("auto_pad").startswith("SAME") and any(
        extent + before + after < (taps - 1) * dilation + 1
        for extent, before, after, taps, dilation in zip(
            node.data.shape[2:], pads[:rank], pads[rank:], kernel, dilations, strict=True
        )
    )


def _padding_alone(node: Node) -> bool:
    """Whether a window may have nothing but padding in it, of which there is no mean."""
    kernel = node.attributes["kernel_shape"]
    rank = len(kernel)
    pads, strides, dilations = (
        node.attributes.get(name, default)
        for name, default in (("pads", (0,) * 2 * rank), ("strides", (1,) * rank), ("dilations", (1,) * rank))
    )
    for d, extent in enumerate(node.data.shape[2:]):
        starts = range(-pads[d], extent + pads[d + rank] + strides[d], strides[d])
        last = extent + pads[d + rank] - (kernel[d] - 1) * dilations[d] - 1
        if node.attributes.get("ceil_mode", 0):
            last += strides[d] - 1
        taps = range(0, kernel[d] * dilations[d], dilations[d])
        if any(not any(0 <= start + tap < extent for tap in taps) for start in starts if start <= last):
            return True
    return False


def _extreme(node: Node) -> bool:
    """Of NaN and a number."""
    return node.text("reduction") in ("max", "min") and _any_nan(node)


def _fractional(node: Node) -> bool:
    """Indices that are no integers: by the text they become some, but both witnesses compare them as they are."""
    x = node.data.astype(np.float64)
    return not bool((np.isfinite(x) & (x == np.trunc(x))).all())


def _no_logarithm(node: Node) -> bool:
    """Of integers whose sum is not positive: infinity and NaN are no integers."""
    if node.data.dtype.name in FLOATS:
        return False
    return _of_nothing(node) or _overflow(node) or not bool((node.data > 0).all())


def _of_nothing(node: Node) -> bool:
    """Whether each result is one of no elements."""
    shape = node.data.shape
    axes = node.given[1].tolist() if len(node.given) > 1 else node.attributes.get("axes", ())
    if not axes:
        return 0 in shape and not node.attributes.get("noop_with_empty_axes", 0)
    return any(shape[axis] == 0 for axis in axes)


def _surplus(node: Node) -> bool:
    """Conditions of elements that are not there."""
    extent = node.data.shape[int(node.attributes["axis"])] if "axis" in node.attributes else node.data.size
    return node.given[1].size > extent


def _single_pixel(node: Node) -> bool:
    """Whether a length between 1 and 2 is that of one pixel, or of more."""
    if node.text("coordinate_transformation_mode") != "pytorch_half_pixel":
        return False
    axes = node.attributes.get("axes", range(node.data.ndim))
    scales = node.inputs[2] if len(node.inputs) == 3 else None
    counts = node.given[-1] if scales is None else scales.astype(np.float64) * [node.data.shape[axis] for axis in axes]
    return any(count < 2 and node.data.shape[axis] > 1 for axis, count in zip(axes, counts, strict=True))


def _fractions(node: Node) -> bool:
    """Integers pulled by a fraction: the definition rounds it first, the text does not say."""
    numbers = [float(node.attributes.get(name, default)) for name, default in (("bias", 0.0), ("lambd", 0.5))]
    return node.data.dtype.name in INTEGERS and any(number != int(number) for number in numbers)


def _parts(node: Node) -> bool:
    """More parts than there are pieces of equal size."""
    parts = int(node.attributes.get("num_outputs", 0))
    extent = node.data.shape[int(node.attributes.get("axis", 0))]
    return parts > 0 and -(-extent // parts) * (parts - 1) >= extent


_UNDEFINED: Final[Mapping[str, Condition]] = {
    "Cast": _cast,
    "CastLike": _cast,
    "Compress": _surplus,
    # What a zero of the border, or between two taps, times infinity is; and what fast algorithms take off again.
    "Conv": _not_finite,
    "ConvTranspose": _not_finite,
    "CumProd": _overflow,
    "CumSum": _overflow,
    "Div": _division,
    "DynamicQuantizeLinear": _no_range,
    "GatherND": _batches,
    "GridSample": _not_finite,
    "MeanVarianceNormalization": _constant_rows,
    "AveragePool": lambda node: _outgrown(node) or _padding_alone(node),
    "LpPool": _outgrown,
    "MaxPool": lambda node: _any_nan(node) or _outgrown(node) or _padding_alone(node),
    "Mod": _division,
    "Pow": _power,
    "QuantizeLinear": _any_nan,
    "Resize": lambda node: _not_finite(node) or _single_pixel(node),
    "ReverseSequence": _lengths,
    "OneHot": _fractional,
    "ReduceLogSum": _no_logarithm,
    **dict.fromkeys(("ScatterElements", "ScatterND"), lambda node: _scattered(node) or _extreme(node)),
    "Shrink": lambda node: _fractions(node) or _large_integers(node),  # both witnesses go by way of floats
    "Split": _parts,
    "Upsample": _not_finite,
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "GlobalMaxPool", "Hardmax", "Max", "Min", "ReduceMax", "ReduceMin", "TopK", "Unique"),
        _any_nan,
    ),
    "ReduceMean": lambda node: _overflow(node) or _of_nothing(node),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceProd", "ReduceSum", "ReduceSumSquare"), _overflow),
}


def is_undefined(node: Node) -> bool:
    """Whether nobody says what the node gives."""
    condition = _UNDEFINED.get(node.operator)
    return condition is not None and condition(node)


# What a witness gets wrong -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """What a witness gets wrong by the standard, as the other one and the text of the standard say.

    Attributes:
        when: of which nodes.
        reason: what it does instead.
        mended: the first version of the witness that does not any more.
        by_chance: whether what it gives depends on what its memory held, and may be right.
    """

    witness: Witness
    operators: frozenset[str]
    when: Condition
    reason: str
    mended: str = ""
    by_chance: bool = False

    @property
    def stands(self) -> bool:
        """Whether the witness that is installed does so still."""
        return not self.mended or installed(self.witness) < Version(self.mended)

    def blames(self, node: Node) -> bool:
        """Whether the witness, in a version of which this stands, gets ``node`` wrong."""
        return node.operator in self.operators and self.when(node)


#: The newest versions of the witnesses of which it is known what they get wrong.
NEWEST: Final[Mapping[Witness, str]] = {Witness.ONNXRUNTIME: "1.32", Witness.REFERENCE: "1.23"}


@cache
def installed(witness: Witness) -> Version:
    """Its major and minor version."""
    found = Version(metadata.version({Witness.ONNXRUNTIME: "onnxruntime", Witness.REFERENCE: "onnx"}[witness]))
    return Version(f"{found.major}.{found.minor}")


def _large(node: Node) -> bool:
    """Whether one element can be so much more than another one that nothing is left of that in a running sum."""
    x = node.data.astype(np.float64)
    return not bool(np.all(np.abs(x) < 1e4))


def _large_integers(node: Node) -> bool:
    return node.data.dtype.name in INTEGERS and any(_large(Node(node.operator, {}, 0, [array])) for array in node.given)


def _infinite(node: Node) -> bool:
    x = node.data.astype(np.float64)
    return bool((np.isnan(x) | (x == np.inf)).any()) or (x.size > 0 and bool((x == -np.inf).any(axis=-1).any()))


def _empty(node: Node) -> bool:
    return 0 in node.data.shape


def _uneven(node: Node) -> bool:
    """Corners are aligned, and a scale times an extent is no integer."""
    if node.text("coordinate_transformation_mode") != "align_corners" or len(node.inputs) != 3:
        return False
    lengths = node.given[-1].astype(np.float64) * [
        node.data.shape[axis] for axis in node.attributes.get("axes", range(node.data.ndim))
    ]
    return not bool((lengths == np.trunc(lengths)).all())


def _far_from_zero(node: Node) -> bool:
    """Whether a channel's mean is much more than its deviation."""
    x = node.data.astype(np.float64)
    axes = tuple(range(2, x.ndim))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return not bool(np.all(np.abs(x.mean(axis=axes)) <= 4 * x.std(axis=axes)))


def _spread(node: Node) -> bool:
    """Whether windows have gaps in them or between them."""
    kernel = node.attributes["kernel_shape"]
    strides, dilations = (node.attributes.get(name, (1,) * len(kernel)) for name in ("strides", "dilations"))
    return any(dilation > 1 or taps < stride for taps, stride, dilation in zip(kernel, strides, dilations, strict=True))


def _apart(node: Node) -> bool:
    """Whether numbers are so far apart that a share of their exponentials is nothing, or nearly."""
    x = node.data.astype(np.float64)
    numbers = x[np.isfinite(x)]
    return bool(np.ptp(numbers) > (8 if node.data.dtype.name == "float16" else 80)) if numbers.size else False


def _from_the_end(node: Node) -> bool:
    """Whether an axis is counted from the end."""
    axes = node.given[1] if len(node.given) > 1 else node.attributes.get("axes", node.attributes.get("axis", 0))
    return bool((np.asarray(axes) < 0).any())


def _is_asymmetric(pads: Sequence[int]) -> bool:
    return list(pads[: len(pads) // 2]) != list(pads[len(pads) // 2 :])


_ORT, _REFERENCE = Witness.ONNXRUNTIME, Witness.REFERENCE

FAULTS: Final[tuple[Fault, ...]] = (
    Fault(
        _ORT,
        frozenset(
            (
                "ArgMax",
                "ArgMin",
                "ReduceL1",
                "ReduceL2",
                "ReduceLogSum",
                "ReduceLogSumExp",
                "ReduceMax",
                "ReduceMean",
                "ReduceMin",
                "ReduceProd",
                "ReduceSum",
                "ReduceSumSquare",
            )
        ),
        lambda node: _empty(node) and _from_the_end(node),
        "keeps the extents of dimensions of a tensor without elements that are counted from the end",
        mended="1.32",
    ),
    Fault(
        _ORT,
        frozenset(("GridSample",)),
        lambda node: (
            node.text("mode") in ("cubic", "bicubic")
            and node.text("padding_mode") == "border"
            and not bool((np.abs(node.given[1].astype(np.float64)) <= 1).all())
        ),
        "moves the centre of a cubic window that lies outside into the image before its neighbours are looked up",
    ),
    Fault(
        _ORT,
        frozenset(("Resize",)),
        _uneven,
        "rounds the length of the result before it aligns corners; ONNX's own tests do not",
    ),
    Fault(
        _ORT,
        frozenset(("LRN",)),
        _large,
        "takes what leaves a window off a running sum, and NaN and infinity for ever stay in it",
    ),
    Fault(
        _ORT,
        frozenset(("QuantizeLinear",)),
        lambda node: node.data.dtype == np.float16 and _infinite(node),
        "makes integers of infinite quotients of float16 before it limits them",
        mended="1.32",
    ),
    Fault(
        _REFERENCE,
        frozenset(("QuantizeLinear",)),
        _infinite,
        "makes integers of infinite quotients before it limits them",
    ),
    Fault(
        _ORT,
        frozenset(("MatMulInteger",)),
        lambda node: node.data.shape[-1] == 0,
        "leaves sums of nothing as they were",
        by_chance=True,
    ),
    Fault(
        _ORT,
        frozenset(("ReduceLogSumExp",)),
        lambda node: node.data.dtype.name in INTEGERS,
        "cuts exponentials of integers off to integers before it adds them up",
    ),
    Fault(
        _ORT,
        frozenset(("InstanceNormalization",)),
        lambda node: _not_finite(node) or _far_from_zero(node),
        "takes the mean times the scale off the bias first, so that a small difference from the mean is lost",
    ),
    Fault(
        _ORT,
        frozenset(("AveragePool", "LpPool", "MaxPool")),
        lambda node: node.text("auto_pad").startswith("SAME") and _spread(node),
        "pads as much as windows without dilation need, and cuts data off where windows are shorter than strides",
    ),
    Fault(
        _ORT,
        frozenset(("LogSoftmax",)),
        lambda node: node.data.dtype.name == "float64" and _infinite(node),
        "makes numbers of rows of float64 with NaN or infinity",
    ),
    Fault(
        _ORT,
        frozenset(("GRU", "LSTM", "RNN")),
        _not_finite,
        "its polynomials of sigmoid and tanh make numbers of NaN, where one is computed on the way",
    ),
    Fault(_REFERENCE, frozenset(("LogSoftmax",)), _apart, "takes the logarithm of what may have become 0"),
    Fault(
        _ORT,
        frozenset(("LayerNormalization",)),
        lambda node: node.results > 1 and bool(np.isinf(node.data.astype(np.float64)).any()),
        "its mean of what has an infinity is no number",
    ),
    Fault(
        _ORT,
        frozenset(("Sign",)),
        lambda node: node.data.dtype.name == "float16" and _any_nan(node),
        "makes 0 of NaN of float16; of float32, too, it is NaN",
    ),
    Fault(
        _REFERENCE,
        frozenset(("LRN",)),
        lambda node: node.data.shape[0] != node.data.shape[1],
        "normalises as many channels as there are images",
    ),
    Fault(
        _REFERENCE,
        frozenset(("MaxPool",)),
        lambda node: node.results > 1 or _is_asymmetric(node.attributes.get("pads", ())),
        "counts places within their channel, and adds the pads of one dimension to another one",
    ),
    Fault(
        _REFERENCE,
        frozenset(("ConvTranspose",)),
        lambda node: int(node.attributes.get("group", 1)) > 1 and len(node.inputs) > 2,
        "adds the biases of the first group to every group",
    ),
    Fault(
        _REFERENCE,
        frozenset(("Shape",)),
        lambda node: int(node.attributes.get("end", 0)) < -node.data.ndim,
        "counts an end before the first dimension from the last one",
    ),
    Fault(
        _ORT,
        frozenset(("Gemm",)),
        lambda node: any(0 in array.shape for array in node.given[:2]) and node.attributes.get("beta", 1.0) != 1,
        "adds the bias as it is to sums of nothing, without beta",
        mended="1.32",
    ),
    Fault(_REFERENCE, frozenset(("Gemm",)), _large_integers, "multiplies integers as floats"),
    Fault(
        _REFERENCE,
        frozenset(("LpNormalization",)),
        lambda node: node.attributes.get("p", 2) == 1,
        "adds up elements with their signs",
    ),
    Fault(_REFERENCE, frozenset(("GlobalMaxPool",)), lambda node: node.data.ndim != 4, "gives another shape"),
    Fault(
        _REFERENCE,
        frozenset(("AveragePool", "LpPool", "MaxPool")),
        lambda node: node.text("auto_pad").startswith("SAME"),
        "cuts data off where windows are further apart than they are wide",
    ),
    Fault(_REFERENCE, frozenset(("Hardmax", "Softmax", "LogSoftmax")), lambda node: node.opset < 13, "runs over one dimension"),
    Fault(
        _REFERENCE,
        frozenset(("Unique",)),
        lambda node: node.attributes.get("sorted", 1) == 0,
        "forgets the order where one result is wanted, and else takes from the wrong dimension",
    ),
    Fault(_REFERENCE, frozenset(("AveragePool", "LpPool")), _any_nan, "leaves NaN out, which it pads with"),
)


def witnesses(node: Node) -> Sequence[Witness]:
    """Whom to ask what the node gives, the best first."""
    wrong = {fault.witness for fault in FAULTS if fault.stands and fault.blames(node)}
    return [witness for witness in Witness if witness not in wrong]
