"""Random recurrent networks as ONNX models: any direction, lengths, optional inputs, clipping, activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}

#: Activations by how many parameters they have.
_CURVES = (
    ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus"),
    ("LeakyRelu", "ThresholdedRelu", "Elu"),
    ("HardSigmoid", "Affine", "ScaledTanh"),
)

_GATE_CURVES = ("Sigmoid", "HardSigmoid", "Softsign", "Tanh")

#: Those whose parameters onnxruntime takes for 0 if they are left out, where ONNX says 1, or nothing.
_EXPLICIT = {"ThresholdedRelu", "Affine", "ScaledTanh"}


@dataclass(frozen=True)
class Network:
    """A model of one node.

    Attributes:
        arrays: of all its inputs, those that the model has as constants among them.
        inputs: those that are given in each call.
    """

    model: onnx.ModelProto
    arrays: dict[str, np.ndarray[Any, Any]]
    inputs: dict[str, np.ndarray[Any, Any]]


def lengths_of(rng: np.random.Generator, steps: int, batch: int) -> np.ndarray[Any, Any]:
    return rng.integers(0 if rng.random() < 0.3 else 1, steps + 1, batch).astype(np.int32)


def network_model(
    node: onnx.NodeProto, arrays: dict[str, np.ndarray[Any, Any]], constants: Sequence[str] = (), opset: int = 14
) -> Network:
    inputs = {name: array for name, array in arrays.items() if name not in constants}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    kind = helper.np_dtype_to_tensor_dtype(arrays["x"].dtype)
    outputs = [helper.make_tensor_value_info(name, kind, [None] * (4 if name == "y" else 3)) for name in node.output]
    weights = [numpy_helper.from_array(arrays[name], name) for name in constants]
    graph = helper.make_graph([node], "network", infos, outputs, weights)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return Network(helper.make_model(graph, opset_imports=imports, ir_version=8), arrays, inputs)


def random_network(rng: np.random.Generator, kind: str) -> Network:
    """An RNN, a GRU or an LSTM."""
    gates = _GATES[kind]
    steps, batch, width, hidden = (int(extent) for extent in rng.integers(1, 6, 4))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    ways = 2 if direction == "bidirectional" else 1

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    optional = {"b": normal(ways, 2 * gates * hidden), "lens": lengths_of(rng, steps, batch), "h": normal(ways, batch, hidden)}
    if kind == "LSTM":
        optional |= {"c": normal(ways, batch, hidden), "p": normal(ways, 3 * hidden)}
        attributes["input_forget"] = int(rng.random() < 0.3)
    elif kind == "GRU":
        attributes["linear_before_reset"] = int(rng.random() < 0.5)
    present = {name: array for name, array in optional.items() if rng.random() < (0.7 if name == "lens" else 0.5)}
    arrays = {
        "x": normal(steps, batch, width),
        "w": normal(ways, gates * hidden, width),
        "r": normal(ways, gates * hidden, hidden),
    }
    names = [*arrays, *(name if name in present else "" for name in optional)]
    arrays |= present
    if rng.random() < 0.4:
        attributes["clip"] = float(rng.uniform(0.2, 2))
    if rng.random() < 0.5:
        attributes |= _activations(rng, _ACTIVATIONS[kind], ways)
    outputs = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    constants = [name for name in arrays if name not in ("x", "h", "c") and rng.random() < 0.5]
    return network_model(helper.make_node(kind, names, outputs, **attributes), arrays, constants)


def _activations(rng: np.random.Generator, count: int, ways: int) -> dict[str, Any]:
    names = [str(rng.choice(_CURVES[rng.integers(3)])) for _ in range(count * ways)]
    if count > 1:
        # Gates without bounds make numbers without bounds in a few steps.
        names[::count] = [str(rng.choice(_GATE_CURVES)) for _ in range(ways)]
    alphas = sum(name not in _CURVES[0] for name in names)
    betas = sum(name in _CURVES[2] for name in names)
    found: dict[str, Any] = {"activations": names}
    if alphas and (_EXPLICIT & set(names) or rng.random() < 0.5):
        found["activation_alpha"] = rng.uniform(0.1, 0.9, alphas).tolist()
        if betas:
            found["activation_beta"] = rng.uniform(0.1, 0.9, betas).tolist()
    return found


def random_quantized(rng: np.random.Generator) -> Network:
    """An LSTM with weights in bytes, by onnxruntime's own operator."""
    steps, batch, width, hidden = (int(extent) for extent in rng.integers(1, 6, 4))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    ways = 2 if direction == "bidirectional" else 1
    by_column = (ways, 4 * hidden) if rng.random() < 0.5 else (ways,)
    # Of signed weights only 7 bits: processors without dot products of bytes saturate onnxruntime's sums of more.
    dtype, low, high, zero = (np.int8, -64, 64, 0) if rng.random() < 0.5 else (np.uint8, 0, 256, 128)

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    optional = {
        "b": normal(ways, 8 * hidden),
        "lens": lengths_of(rng, steps, batch),
        "h": normal(ways, batch, hidden),
        "c": normal(ways, batch, hidden),
        "p": normal(ways, 3 * hidden),
    }
    present = {name: array for name, array in optional.items() if rng.random() < 0.5}
    arrays = {
        "x": normal(steps, batch, width),
        "w": rng.integers(low, high, (ways, width, 4 * hidden)).astype(dtype),
        "r": rng.integers(low, high, (ways, hidden, 4 * hidden)).astype(dtype),
    }
    parameters = {}
    for name in ("w", "r"):
        parameters[f"{name}s"] = rng.uniform(0.002, 0.02, by_column).astype(np.float32)
        parameters[f"{name}z"] = np.full(by_column, zero, dtype)
    names = [*arrays, *(name if name in present else "" for name in optional), *parameters]
    arrays |= present | parameters
    attributes = {"hidden_size": hidden, "direction": direction, "input_forget": int(rng.random() < 0.3)}
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y", "yh", "yc"], domain="com.microsoft", **attributes)
    return network_model(node, arrays, [name for name in arrays if name not in ("x", "lens", "h", "c")])


def hidden_shape(network: Network) -> Network:
    """The same network of data whose shape is known only while the model runs."""
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    steps = network.inputs["x"].shape[0]
    model.graph.node[0].input[0] = "kept"
    model.graph.node.insert(0, helper.make_node("Compress", ["x", "seen"], ["kept"], axis=0))
    model.graph.input.append(helper.make_tensor_value_info("seen", TensorProto.BOOL, [steps]))
    return Network(model, network.arrays, {**network.inputs, "seen": np.ones(steps, np.bool_)})
