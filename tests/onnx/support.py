"""Small ONNX models, the models that come with ONNX, and a stand-in for kernels: the numpy meaning of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ansorlite.frontends.onnx import load_model
from ansorlite.graph.hybrid import compile_any
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_MODELS = sorted(path.stem for path in LIGHT.glob("light_*.onnx"))


@dataclass(frozen=True)
class Meaning:
    """A task's numpy meaning in the place of its kernel."""

    task: Task

    def bind(self, *arrays: np.ndarray) -> Callable[[], None]:
        inputs, output = arrays[:-1], arrays[-1]
        return lambda: np.copyto(output, evaluate(self.task.dag, inputs)[0])


def run(model: onnx.ModelProto | bytes | str | Path, inputs: Mapping[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
    """What the imported model computes of ``inputs``, by the numpy meaning of its tasks."""
    return compile_any(load_model(model, **options), Meaning)(inputs)


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 21,
) -> onnx.ModelProto:
    """A model whose inputs have the shapes and dtypes of given arrays."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model)
    for output in inferred.graph.output:
        if not output.type.HasField("tensor_type"):
            # Shape inference knows nothing of operators that are functions; ours keep the shape of their input.
            shape = [None] * next(iter(inputs.values())).ndim
            output.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, shape))
    return inferred


def light_model(name: str) -> Path:
    return LIGHT / f"{name}.onnx"


def light_input(shape: Sequence[int]) -> np.ndarray:
    """What ONNX's own backend tests feed these models."""
    count = np.prod(shape)
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def light_output(name: str) -> np.ndarray:
    """The recorded output."""
    tensor = onnx.TensorProto()
    tensor.ParseFromString((LIGHT / f"{name}_output_0.pb").read_bytes())
    return numpy_helper.to_array(tensor)
