"""ONNX's node tests, and which operators they are for."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Final

from onnx import TensorProto
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

#: The dtypes that every backend has.
PLAIN: Final = frozenset({TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL})


@cache
def cases() -> tuple[TestCase, ...]:
    """ONNX's node tests. Making them takes some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(load_model_tests(kind="node"))


def operator_of(case: TestCase) -> str:
    """The operator that a test is for; of an expanded one, the operator whose body it is."""
    return _operators()[case.name.partition("_expanded")[0]]


@cache
def _operators() -> dict[str, str]:
    """Name of each test that is not expanded → its operator; what comes before the last node only makes its inputs."""
    return {case.name: str(case.model.graph.node[-1].op_type) for case in cases() if "_expanded" not in case.name}


def is_plain(case: TestCase) -> bool:
    values = [*case.model.graph.input, *case.model.graph.output]
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type in PLAIN for v in values)
