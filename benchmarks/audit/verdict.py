"""One model, by ansorlite and by onnxruntime without optimisations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from ansorlite.errors import AnsorliteError
from ansorlite.frontends.onnx.backend import Backend
from ansorlite.te import dtypes
from benchmarks.audit.vary import Case
from benchmarks.conformance.run import Meaning, hosts_of

#: By dtype; to the magnitude of the whole result.
_TOLERANCES: Final = {"float64": 1e-5, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}

#: They write floats as strings; how many digits these have is not defined, so they are compared to so much.
_CASTS: Final = frozenset(("Cast", "CastLike"))
_DIGITS: Final = 1e-6

#: What onnxruntime calls ONNX's types of elements.
_TYPES: Final = {name.lower(): number for name, number in onnx.TensorProto.DataType.items()}


class Outcome(Enum):
    """What became of a model."""

    RIGHT = "right"
    WRONG = "WRONG"
    CRASH = "CRASH"
    REFUSED = "refused"
    UNCHECKED = "unchecked"


class Way(Enum):
    """How a model gives a node its inputs."""

    GIVEN = "inputs"
    CONSTANT = "constants"
    HIDDEN = "unknown shape"


@dataclass(frozen=True)
class Verdict:
    """What became of a model.

    Attributes:
        python: whether the node, or a part of it, ran in Python.
        detail: what is wrong, or why it is refused.
    """

    case: Case
    way: Way
    outcome: Outcome
    python: bool = False
    detail: str = ""


class _Numpy(Backend):
    @classmethod
    def kernel_for(cls) -> Any:
        return Meaning


def judge(case: Case, way: Way) -> Verdict:
    """Run a model both ways."""
    tensors = [name for name, datum in case.data.items() if isinstance(datum, np.ndarray)]
    hidden = next((name for name in tensors if case.data[name].ndim), "")
    if way is Way.HIDDEN and not hidden:
        return Verdict(case, way, Outcome.UNCHECKED, detail="no input has a shape")
    try:
        model = case.model(tensors if way is Way.CONSTANT else (), hidden if way is Way.HIDDEN else "")
        inputs = {} if way is Way.CONSTANT else dict(case.data)
        if len(inputs) != len(model.graph.input) and way is Way.HIDDEN:
            inputs["all of it"] = np.ones(len(case.data[hidden]), np.bool_)
        kinds, theirs = _onnxruntime(model, inputs)
        types = [_type(kind, result) for kind, result in zip(kinds, theirs, strict=True)]
    except Exception as error:
        # Whatever onnxruntime does not take is no question to us.
        return Verdict(case, way, Outcome.UNCHECKED, detail=" ".join(str(error).split()))
    for entry, kind in zip(model.graph.output, types, strict=True):
        entry.type.CopyFrom(kind)
    try:
        ready = _Numpy.prepare(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = ready.run(inputs)
    except AnsorliteError as error:
        return Verdict(case, way, Outcome.REFUSED, detail=str(error))
    except Exception as error:
        return Verdict(case, way, Outcome.CRASH, detail=f"{type(error).__name__}: {error}")
    python = any(step.operator != "Compress" or way is not Way.HIDDEN for step in hosts_of(ready.model))
    detail = difference(ours, theirs, digits_open=case.node.op_type in _CASTS)
    return Verdict(case, way, Outcome.WRONG if detail else Outcome.RIGHT, python, detail)


def _onnxruntime(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """The types of the results, as onnxruntime writes them, and the results."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [entry.type for entry in session.get_outputs()], list(session.run(None, dict(inputs)))


def _type(kind: str, result: Any) -> onnx.TypeProto:
    """``tensor(float)`` and the like, of the rank of a result."""
    if kind.startswith("optional("):
        return helper.make_optional_type_proto(_type(kind[9:-1], result))
    if kind.startswith("seq("):
        first = result[0] if result else np.zeros(0)
        return helper.make_sequence_type_proto(_type(kind[4:-1], first))
    number = _TYPES[kind.removeprefix("tensor(").removesuffix(")")]
    return helper.make_tensor_type_proto(number, [None] * np.ndim(result))


def difference(ours: Sequence[Any], theirs: Sequence[Any], digits_open: bool = False) -> str:
    """Where two lists of results differ; empty if they do not.

    Args:
        digits_open: whether strings are equal that are two ways to write one number.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    for position, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        found = _difference(own, other, digits_open)
        if found:
            return f"result {position}: {found}"
    return ""


def _one_number(own: object, other: object) -> bool:
    try:
        return math.isclose(float(str(own)), float(str(other)), rel_tol=_DIGITS)
    except ValueError:
        return False


def _difference(own: Any, other: Any, digits_open: bool) -> str:
    if isinstance(own, list | tuple) or isinstance(other, list | tuple):
        return difference(own, other, digits_open)
    own, other = np.asarray(own), np.asarray(other)
    if own.shape != other.shape:
        return f"shape {own.shape} instead of {other.shape}"
    if own.dtype.kind in "OU" or other.dtype.kind in "OU":
        pairs = zip(own.astype(object).flat, other.astype(object).flat, strict=True)
        same = all(a == b or (digits_open and _one_number(a, b)) for a, b in pairs)
        return "" if same else f"{own.tolist()} instead of {other.tolist()}"[:200]
    if own.dtype.itemsize == other.dtype.itemsize and own.dtype.name not in dtypes.NUMPY:
        # Types that numpy does not have come as bits.
        own, other = (array.view(f"u{array.itemsize}") for array in (own, other))
    if own.dtype != other.dtype:
        return f"{own.dtype} instead of {other.dtype}"
    tolerance = _TOLERANCES.get(own.dtype.name, 0)
    a, b = (array.astype(np.float64 if tolerance else array.dtype) for array in (own, other))
    finite = np.abs(b[np.isfinite(b)]) if tolerance else np.zeros(0)
    size = float(finite.max()) if finite.size else 0.0
    if np.allclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True) if tolerance else np.array_equal(a, b):
        return ""
    return f"{a.reshape(-1)[:8].tolist()} instead of {b.reshape(-1)[:8].tolist()}"
