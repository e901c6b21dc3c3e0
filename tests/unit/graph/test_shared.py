"""Programs that have weights in common: each computes what it does alone, and equal bytes are there once."""

from __future__ import annotations

import gc

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from ansorlite.best import Programs
from ansorlite.frontends.onnx import load_any
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import compile_any
from ansorlite.graph.open_model import OpenModel
from ansorlite.graph.shared import SharedWeights
from ansorlite.task import Task
from tests.unit.graph.support import Meaning


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture
def model(rng: np.random.Generator) -> OpenModel:
    """Two products, of any number of rows."""
    weights = {"v": rng.normal(size=(24, 40)).astype("f4"), "w": rng.normal(size=(40, 24)).astype("f4")}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])],
        "products",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 24])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 24])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opened = load_any(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    assert isinstance(opened, OpenModel)
    return opened


BYTES = 2 * 24 * 40 * 4


def compiled(model: OpenModel, size: int, shared: SharedWeights | None, kernel_for: object = Meaning) -> Executable:
    program = compile_any(model.at({"n": size}), kernel_for, shared)  # type: ignore[arg-type]
    assert isinstance(program, Executable)
    return program


def check(program: Executable, alone: Executable, rng: np.random.Generator) -> None:
    x = rng.normal(size=program.inputs["x"].shape).astype("f4")
    np.testing.assert_array_equal(program(x)["y"], alone(x)["y"])
    results, _ = program.timed({"x": x})
    np.testing.assert_array_equal(results["y"], alone(x)["y"])


def test_constants_that_are_read_as_they_are(model: OpenModel, rng: np.random.Generator) -> None:
    shared = SharedWeights()
    programs = [compiled(model, size, shared) for size in (1, 5, 8)]
    assert [program.weight_bytes for program in programs] == [BYTES, 0, 0]
    for program in programs:
        check(program, compiled(model, *program.inputs["x"].shape[:1], None), rng)


def test_native_kernels_and_what_they_prepare(model: OpenModel, rng: np.random.Generator) -> None:
    shared, programs = SharedWeights(), Programs(None)

    def kernel_for(task: Task) -> object:
        return programs.kernel(task)

    first, again, other = (compiled(model, size, shared, kernel_for) for size in (16, 16, 48))
    assert first.weight_bytes == compiled(model, 16, None, kernel_for).weight_bytes > 0
    assert again.weight_bytes == 0
    for program in (first, again, other):
        check(program, compiled(model, *program.inputs["x"].shape[:1], None, kernel_for), rng)


def test_what_no_program_has_any_more_is_forgotten(model: OpenModel, rng: np.random.Generator) -> None:
    shared = SharedWeights()
    first, second = compiled(model, 2, shared), compiled(model, 3, shared)
    del first
    gc.collect()
    check(second, compiled(model, 3, None), rng)
    third = compiled(model, 4, shared)
    assert third.weight_bytes == 0
    del second, third
    gc.collect()
    assert compiled(model, 2, shared).weight_bytes == BYTES


def test_equal_weights_within_one_program(rng: np.random.Generator) -> None:
    weight = rng.normal(size=(8, 8)).astype("f4")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("Add", ["h", "w"], ["y"])],
        "twice",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 8, 8])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 8, 8])],
        [numpy_helper.from_array(weight, "v"), numpy_helper.from_array(weight[None], "w")],
    )
    opened = load_any(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    assert isinstance(opened, OpenModel)
    program = compiled(opened, 3, SharedWeights())
    assert program.weight_bytes == weight.nbytes
    check(program, compiled(opened, 3, None), rng)
