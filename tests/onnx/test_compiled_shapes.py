"""Ordinary operators whose default programs once did not compile, for the machines that they did not compile for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import ansorlite as al
from ansorlite.frontends.onnx import load_model
from ansorlite.programs.build import build_candidate
from ansorlite.search.default import default_candidate
from ansorlite.spaces.derivation import derive
from ansorlite.target import LEVELS, obstacle, resolve
from tests.onnx.support import make_model

#: Operator, shapes of its inputs, dtype, attributes. The first two were left with one row of the vectors that they transpose.
CASES: Final[Mapping[str, tuple[str, list[tuple[int, ...]], str, dict[str, Any]]]] = {
    "convolution": ("Conv", [(2, 2, 8, 8), (8, 2, 5, 2)], "float32", {"strides": [2, 1], "dilations": [2, 1], "pads": [1] * 4}),
    "product of halves": ("MatMul", [(2, 2, 8, 7), (2, 1, 7, 3)], "float16", {}),
    "softmax of halves": ("Softmax", [(3, 37)], "float16", {}),
}


@pytest.mark.parametrize("target", LEVELS)
@pytest.mark.parametrize("name", CASES)
def test_default_programs_compile_and_are_right(name: str, target: str, tmp_path: Path) -> None:
    operator, shapes, dtype, attributes = CASES[name]
    rng = np.random.default_rng(0)
    inputs = {f"x{n}": rng.standard_normal(shape).astype(dtype) for n, shape in enumerate(shapes)}
    proto = make_model([helper.make_node(operator, list(inputs), ["y"], **attributes)], inputs, ["y"])
    if obstacle(resolve(target)) is None:
        executable = al.compile(al.from_onnx(proto, target=target))
        executable.export(tmp_path / "model.so")
        (expected,) = ReferenceEvaluator(proto).run(None, inputs)
        for run in (executable, al.load(tmp_path / "model.so")):
            difference = run(inputs)["y"].astype(np.float64) - expected
            assert np.abs(difference).max() < (1e-2 if dtype == "float16" else 1e-4)
        return
    for task, _ in load_model(proto, target=target).tasks:
        assert build_candidate(task, default_candidate(task, derive(task))).code
