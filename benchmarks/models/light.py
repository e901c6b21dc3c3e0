"""The light models that come with the onnx package: real networks, whose weights are made on the spot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models.example import Array, Example, Source

_FOLDER: Final = Path(onnx.__file__).parent / "backend/test/data/light"


def light(name: str) -> Source:
    """``light_NAME.onnx`` with random weights, on a random picture."""

    def source(rng: np.random.Generator) -> Example:
        proto = spread_weights(_FOLDER / f"light_{name}.onnx", rng)
        return Example(proto.SerializeToString(), dict(_inputs(proto, rng)), None)

    return source


def spread_weights(path: Path, rng: np.random.Generator) -> onnx.ModelProto:
    """The model with random weights in the place of the constant ones, of a size that keeps activations in range.

    What a last softmax is taken of becomes an output too: of deep networks with such weights it makes zeros and a one, which
    say nothing about the numbers.
    """
    model = onnx.load(path)
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    roles = {name: (node.op_type, position) for node in model.graph.node for position, name in enumerate(node.input)}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = [int(extent) for extent in known[node.input[0]]]
        role = roles.get(node.output[0], ("", 0))
        values = rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:]) / 2))
        if role[0] == "BatchNormalization" and role[1] in (1, 4):
            values = rng.uniform(0.5, 1.5, shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        model.graph.input.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, shape))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    outputs = {output.name: output for output in model.graph.output}
    for node in kept:
        if node.op_type == "Softmax" and node.output[0] in outputs:
            logits = model.graph.output.add()
            logits.CopyFrom(outputs[node.output[0]])
            logits.name = node.input[0]
    return model


def _inputs(proto: onnx.ModelProto, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    initialized = {tensor.name for tensor in proto.graph.initializer}
    for entry in proto.graph.input:
        if entry.name not in initialized:
            shape = [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
            yield entry.name, rng.standard_normal(shape, np.float32)
