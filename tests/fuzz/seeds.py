"""Small models to be mutated: each kind of operator, control flow, functions, sequences, strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node

F, I64, B, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def _value(name: str, kind: int, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Any] | None = None,
    kinds: Mapping[str, int] | None = None,
    opsets: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    kinds = {**dict.fromkeys((*inputs, *outputs), F), **(kinds or {})}
    graph = helper.make_graph(
        nodes,
        "seed",
        [_value(name, kinds[name], shape) for name, shape in inputs.items()],
        [_value(name, kinds[name], None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in (opsets or {"": 21}).items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10, functions=functions)
    inferred = onnx.shape_inference.infer_shapes(model)
    for output in inferred.graph.output:
        if not output.type.tensor_type.HasField("shape"):
            output.type.tensor_type.shape.dim.add().dim_param = "n"  # no one reads it, but it must be there
    return inferred


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _conv() -> onnx.ModelProto:
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1], group=1),
        make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], epsilon=1e-5),
        make_node("Relu", ["n"], ["r"]),
        make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        make_node("ConvTranspose", ["p", "t"], ["u"], strides=[2, 2], output_padding=[0, 0]),
        make_node("GlobalAveragePool", ["u"], ["y"]),
    ]
    b = np.ones(4, np.float32)
    constants = {"w": _weights(4, 2, 3, 3), "b": b, "s": b, "m": b, "v": b, "t": _weights(4, 2, 2, 2)}
    return _model(nodes, {"x": (1, 2, 6, 6)}, constants=constants)


def _dense() -> onnx.ModelProto:
    nodes = [
        make_node("Gemm", ["x", "w", "b"], ["g"], transB=1, alpha=0.5),
        make_node("LayerNormalization", ["g", "s"], ["l"], axis=-1),
        make_node("Softmax", ["l"], ["f"], axis=1),
        make_node("MatMul", ["f", "v"], ["m"]),
        make_node("Gelu", ["m"], ["e"]),
        make_node("Einsum", ["e", "x"], ["y"], equation="ij,kl->ik"),
    ]
    constants = {"w": _weights(4, 3), "b": _weights(4), "s": _weights(4), "v": _weights(4, 5)}
    return _model(nodes, {"x": (2, 3)}, constants=constants)


def _shapes() -> onnx.ModelProto:
    nodes = [
        make_node("Shape", ["x"], ["s"]),
        make_node("Gather", ["s", "zero"], ["n"]),
        make_node("Concat", ["n", "rest"], ["to"], axis=0),
        make_node("Reshape", ["x", "to"], ["r"]),
        make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
        make_node("Slice", ["t", "zero", "two", "zero"], ["c"]),
        make_node("Pad", ["c", "pads"], ["p"], mode="constant"),
        make_node("Unsqueeze", ["p", "zero"], ["u"]),
        make_node("Squeeze", ["u", "zero"], ["q"]),
        make_node("Split", ["q"], ["a", "b"], axis=0, num_outputs=2),
        make_node("Flatten", ["a"], ["y"], axis=1),
    ]
    constants = {"zero": _ints(0), "two": _ints(2), "rest": _ints(-1), "pads": _ints(1, 0, 1, 2)}
    return _model(nodes, {"x": (2, 2, 3)}, ("y", "b"), constants)


def _sizes() -> onnx.ModelProto:
    nodes = [
        make_node("ConstantOfShape", ["dims"], ["z"], value=helper.make_tensor("one", F, [1], [1.5])),
        make_node("Expand", ["x", "dims"], ["e"]),
        make_node("Tile", ["e", "times"], ["t"]),
        make_node("Range", ["low", "high", "step"], ["r"]),
        make_node("Cast", ["r"], ["f"], to=F),
        make_node("ReduceSum", ["f"], ["s"], keepdims=0),
        make_node("Add", ["z", "x"], ["a"]),
        make_node("ReduceMean", ["t"], ["m"], keepdims=0),
        make_node("Sum", ["a", "m", "s"], ["y"]),
    ]
    constants = {"dims": _ints(2, 3), "times": _ints(1, 2), "low": np.int64(0), "high": np.int64(5), "step": np.int64(1)}
    return _model(nodes, {"x": (1, 3)}, constants=constants)


def _indices() -> onnx.ModelProto:
    nodes = [
        make_node("Gather", ["x", "at"], ["g"], axis=0),
        make_node("GatherElements", ["x", "to"], ["h"], axis=1),
        make_node("ScatterND", ["x", "nd", "rows"], ["n"]),
        make_node("OneHot", ["at", "depth", "ends"], ["o"], axis=-1),
        make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0),
        make_node("CumSum", ["x", "axis"], ["k"]),
        make_node("Trilu", ["x"], ["l"], upper=0),
        make_node("Where", ["c", "x", "k"], ["y"]),
        make_node("Greater", ["x", "l"], ["c"]),
    ]
    nodes.insert(7, nodes.pop())
    constants = {
        "at": _ints(0, 1),
        "to": np.zeros((3, 2), np.int64),
        "nd": _ints(1).reshape(1, 1),
        "rows": _weights(1, 4),
        "depth": np.int64(4),
        "ends": np.array([0, 1], np.float32),
        "axis": np.int64(0),
    }
    return _model(nodes, {"x": (3, 4)}, ("y", "g", "h", "n", "o", "i"), constants, {"i": I64})


def _quantized() -> onnx.ModelProto:
    nodes = [
        make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        make_node("QLinearMatMul", ["q", "scale", "zero", "w", "scale", "zero", "scale", "zero"], ["m"]),
        make_node("DequantizeLinear", ["m", "scale", "zero"], ["y"]),
        make_node("DynamicQuantizeLinear", ["x"], ["d", "e", "f"]),
        make_node("MatMulInteger", ["d", "w", "f"], ["i"]),
    ]
    constants = {"scale": np.float32(0.1), "zero": np.uint8(7), "w": np.arange(12, dtype=np.uint8).reshape(3, 4)}
    return _model(nodes, {"x": (2, 3)}, ("y", "i"), constants, {"i": TensorProto.INT32})


def _recurrent() -> onnx.ModelProto:
    nodes = [
        make_node("LSTM", ["x", "w", "r"], ["o", "h"], hidden_size=2, direction="forward"),
        make_node("GRU", ["x", "gw", "gr"], ["", "z"], hidden_size=2, linear_before_reset=1),
        make_node("Add", ["h", "z"], ["y"]),
    ]
    constants = {"w": _weights(1, 8, 3), "r": _weights(1, 8, 2), "gw": _weights(1, 6, 3), "gr": _weights(1, 6, 2)}
    return _model(nodes, {"x": (4, 2, 3)}, ("y", "o"), constants)


def _resize() -> onnx.ModelProto:
    nodes = [
        make_node("Resize", ["x", "", "scales"], ["r"], mode="linear"),
        make_node("Resize", ["x", "", "", "sizes"], ["n"], mode="nearest"),
        make_node("DepthToSpace", ["r"], ["d"], blocksize=2),
        make_node("LRN", ["n"], ["l"], size=3),
        make_node("AveragePool", ["l"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
    ]
    return _model(
        nodes, {"x": (1, 4, 3, 3)}, ("y", "d"), {"scales": np.array([1, 1, 2, 2], np.float32), "sizes": _ints(1, 4, 5, 2)}
    )


def _body(name: str = "body") -> onnx.GraphProto:
    return helper.make_graph(
        [
            make_node("Mul", ["v", "two"], ["w"]),
            make_node("Identity", ["go"], ["on"]),
            make_node("Identity", ["w"], ["each"]),
        ],
        name,
        [_value("i", I64, []), _value("go", B, []), _value("v", F, [2])],
        [_value("on", B, []), _value("w", F, [2]), _value("each", F, [2])],
    )


def _loop() -> onnx.ModelProto:
    nodes = [make_node("Loop", ["times", "", "x"], ["y", "all"], body=_body())]
    return _model(nodes, {"x": (2,)}, ("y", "all"), {"times": np.int64(3), "two": np.float32(2)})


def _known_loop() -> onnx.ModelProto:
    """Everything that the loop reads is constant: whoever folds it runs it."""
    nodes = [
        make_node("Loop", ["times", "", "start"], ["v", "all"], body=_body()),
        make_node("Add", ["v", "x"], ["y"]),
        make_node("MelWeightMatrix", ["bins", "length", "rate", "low", "high"], ["mel"]),
        make_node("HannWindow", ["length"], ["window"]),
    ]
    constants = {
        "times": np.int64(3),
        "start": np.ones(2, np.float32),
        "two": np.float32(2),
        "bins": np.int64(4),
        "length": np.int64(8),
        "rate": np.int64(8192),
        "low": np.float32(0),
        "high": np.float32(4096),
    }
    return _model(nodes, {"x": (2,)}, ("y", "all", "mel", "window"), constants)


def _open_loop() -> onnx.ModelProto:
    nodes = [make_node("Loop", ["times", "", "x"], ["y", "all"], body=_body())]
    return _model(nodes, {"x": (2,), "times": ()}, ("y", "all"), {"two": np.float32(2)}, {"times": I64})


def _scan() -> onnx.ModelProto:
    body = helper.make_graph(
        [make_node("Add", ["s", "row"], ["t"]), make_node("Identity", ["t"], ["out"])],
        "scanned",
        [_value("s", F, [2]), _value("row", F, [2])],
        [_value("t", F, [2]), _value("out", F, [2])],
    )
    return _model([make_node("Scan", ["first", "x"], ["y", "all"], body=body, num_scan_inputs=1)], {"x": (3, 2)}, ("y", "all"),
                  {"first": np.zeros(2, np.float32)})  # fmt: skip


def _branches() -> onnx.ModelProto:
    def branch(op: str) -> onnx.GraphProto:
        inner = helper.make_graph([make_node(op, ["x"], ["inner"])], "inner", [], [_value("inner", F, [2])])
        node = make_node("If", ["known"], ["r"], then_branch=inner, else_branch=inner)
        return helper.make_graph([node], op, [], [_value("r", F, [2])])

    nodes = [make_node("If", ["c"], ["y"], then_branch=branch("Abs"), else_branch=branch("Neg"))]
    return _model(nodes, {"x": (2,), "c": ()}, constants={"known": np.bool_(True)}, kinds={"c": B})


def _fallbacks() -> onnx.ModelProto:
    nodes = [
        make_node("TopK", ["x", "k"], ["t", "i"], axis=0),
        make_node("NonZero", ["t"], ["n"]),
        make_node("Unique", ["x"], ["u"], sorted=1),
        make_node("SequenceConstruct", ["x", "x"], ["q"]),
        make_node("ConcatFromSequence", ["q"], ["y"], axis=0),
        make_node("Det", ["z"], ["d"]),
    ]
    return _model(nodes, {"x": (4,), "z": (2, 2)}, ("y", "n", "u", "d"), {"k": _ints(2)}, {"n": I64})


def _strings() -> onnx.ModelProto:
    nodes = [
        make_node("StringConcat", ["x", "tail"], ["s"]),
        make_node("RegexFullMatch", ["s"], ["y"], pattern="a.*b"),
        make_node("LabelEncoder", ["x"], ["l"], domain="ai.onnx.ml", keys_strings=["a", "b"], values_int64s=[1, 2]),
    ]
    model = _model(nodes, {"x": (2,)}, ("y", "l"), {}, {"x": S, "y": B, "l": I64}, {"": 21, "ai.onnx.ml": 4})
    model.graph.initializer.append(helper.make_tensor("tail", S, [1], [b"b"]))
    return model


def _functions() -> onnx.ModelProto:
    function = helper.make_function(
        "own", "twice", ["a"], ["b"], [make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    return _model(
        [make_node("twice", ["x"], ["y"], domain="own")], {"x": (2, 3)}, opsets={"": 21, "own": 1}, functions=[function]
    )


def _attention() -> onnx.ModelProto:
    nodes = [
        make_node("Attention", ["x", "x", "x"], ["a"], q_num_heads=2, kv_num_heads=2),
        make_node("RMSNormalization", ["a", "s"], ["y"], axis=-1),
    ]
    return _model(nodes, {"x": (1, 3, 4)}, constants={"s": np.ones(4, np.float32)}, opsets={"": 23})


def _chain() -> onnx.ModelProto:
    names = ["x", *(f"v{n}" for n in range(12)), "y"]
    operators = (
        "Relu",
        "Exp",
        "Neg",
        "Sigmoid",
        "Tanh",
        "Erf",
        "Abs",
        "Sqrt",
        "Floor",
        "Identity",
        "Softplus",
        "HardSwish",
        "Clip",
    )
    nodes = [make_node(op, [a], [b]) for op, a, b in zip(operators, names[:-1], names[1:], strict=True)]
    return _model(nodes, {"x": (2, 2)})


SEEDS: Final[Mapping[str, onnx.ModelProto]] = {
    "conv": _conv(),
    "dense": _dense(),
    "shapes": _shapes(),
    "sizes": _sizes(),
    "indices": _indices(),
    "quantized": _quantized(),
    "recurrent": _recurrent(),
    "resize": _resize(),
    "loop": _loop(),
    "known_loop": _known_loop(),
    "open_loop": _open_loop(),
    "scan": _scan(),
    "branches": _branches(),
    "fallbacks": _fallbacks(),
    "strings": _strings(),
    "functions": _functions(),
    "attention": _attention(),
    "chain": _chain(),
}
