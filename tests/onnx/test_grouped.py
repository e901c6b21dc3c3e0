"""GroupQueryAttention beside onnxruntime: prompts, tokens, caches with room and caches that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[peers]'")

import onnxruntime

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_any, load_model
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import AnyModel, HybridExecutable, compile_any
from ansorlite.graph.model import Model
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.graph.open_model import OpenModel
from ansorlite.graph.shared import SharedWeights
from tests.onnx.support import Meaning, run

HEADS, GROUPS, SIZE, PLACES = 4, 2, 16, 32

RNG = np.random.default_rng(0)

#: Inputs after the lengths, in order.
LATER = ("cos", "sin", "positions", "bias", "sink")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def inputs_of(length: int, room: int, filled: list[int], *, packed: bool = False) -> dict[str, np.ndarray]:
    """
    Args:
        room: places of each cache.
        filled: of each sequence, places with what comes.
    """
    batch = len(filled)
    if packed:
        found = {"q": normal(batch, length, (HEADS + 2 * GROUPS) * SIZE)}
    else:
        found = {name: normal(batch, length, heads * SIZE) for name, heads in (("q", HEADS), ("k", GROUPS), ("v", GROUPS))}
    if room:
        found |= {name: normal(batch, GROUPS, room, SIZE) for name in ("past_k", "past_v")}
    return found | {"ends": np.array(filled, np.int32) - 1}


def node(names: list[str], **attributes: Any) -> onnx.NodeProto:
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS} | attributes
    return helper.make_node("GroupQueryAttention", names, ["y", "keys", "values"], domain="com.microsoft", **attributes)


def model(inputs: dict[str, np.ndarray], total: int, **attributes: Any) -> onnx.ModelProto:
    order = ("q", "k", "v", "past_k", "past_v", "ends", "total", *LATER)
    names = [name if name in inputs or name == "total" else "" for name in order]
    while not names[-1]:
        names.pop()
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "keys", "values")]
    constant = numpy_helper.from_array(np.array(total, np.int32), "total")
    graph = helper.make_graph([node(names, **attributes)], "grouped", given, results, [constant])
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=8)


OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]

TURNS = {"cos": normal(PLACES, SIZE // 2), "sin": normal(PLACES, SIZE // 2)}

CASES: dict[str, tuple[dict[str, np.ndarray], dict[str, Any]]] = {
    "prompt": (inputs_of(5, 0, [5]), {}),
    "prompts of two lengths": (inputs_of(6, 0, [6, 4]), {}),
    "prompt with positions": (inputs_of(5, 0, [5]) | TURNS, {"do_rotary": 1}),
    "token": (inputs_of(1, 7, [8]), {}),
    "token with positions": (inputs_of(1, 7, [8]) | TURNS, {"do_rotary": 1}),
    "pairs side by side": (inputs_of(1, 7, [8]) | TURNS, {"do_rotary": 1, "rotary_interleaved": 1}),
    "positions that are given": (inputs_of(1, 7, [8]) | TURNS | {"positions": np.array([[11]])}, {"do_rotary": 1}),
    "caches with room": (inputs_of(1, 16, [9]) | TURNS, {"do_rotary": 1}),
    "caches filled to different places": (inputs_of(1, 16, [9, 5]) | TURNS, {"do_rotary": 1}),
    "several tokens": (inputs_of(3, 7, [10]) | TURNS, {"do_rotary": 1}),
    "several tokens and room": (inputs_of(4, 16, [12]), {}),
    "in one array": (inputs_of(5, 0, [5], packed=True) | TURNS, {"do_rotary": 1}),
    "token in one array": (inputs_of(1, 7, [8], packed=True), {}),
    "window": (inputs_of(6, 0, [6]), {"local_window_size": 3}),
    "window of a token": (inputs_of(1, 9, [10]), {"local_window_size": 4}),
    "cap": (inputs_of(5, 0, [5]), {"softcap": 2.0}),
    "scale": (inputs_of(5, 0, [5]), {"scale": 0.5}),
    "a place beside": (inputs_of(5, 0, [5]), {"smooth_softmax": 1}),
    "a place beside for each head": (inputs_of(1, 9, [10]) | {"sink": normal(HEADS)}, {}),
    "bias": (inputs_of(5, 0, [5]) | {"bias": normal(1, HEADS, 5, 5)}, {}),
    "bias, cap and window": (inputs_of(1, 9, [10]) | {"bias": normal(1, 1, 1, 10)}, {"softcap": 3.0, "local_window_size": 4}),
}


@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime_has_it(name: str) -> None:
    inputs, attributes = CASES[name]
    filled = inputs["ends"] + 1
    proto = model(inputs, int(filled.max()), **attributes)
    expected = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)
    assert isinstance(load_model(proto), Model)
    found = run(proto, inputs)
    length = inputs["q"].shape[1]
    for b, end in enumerate(filled):
        # What is behind the end of a sequence means nothing.
        rows = length if "past_k" in inputs else min(length, end)
        np.testing.assert_allclose(found["y"][b, :rows], expected[0][b, :rows], atol=1e-5)
        for ours, theirs in zip((found["keys"], found["values"]), expected[1:], strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours[b, :, :end], theirs[b, :, :end], atol=1e-5)


def test_tokens_with_caches_that_grow() -> None:
    """As exporters write it: lengths are counted from a mask."""
    nodes = [
        helper.make_node("ReduceSum", ["mask", "last"], ["filled"], keepdims=0),
        helper.make_node("Sub", ["filled", "one"], ["ends_64"]),
        helper.make_node("Cast", ["ends_64"], ["ends"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["total_64"]),
        helper.make_node("Cast", ["total_64"], ["total"], to=TensorProto.INT32),
        node(["q", "k", "v", "past_k", "past_v", "ends", "total", "cos", "sin"], do_rotary=1),
    ]
    dims = {
        "q": ["batch", "new", HEADS * SIZE], "k": ["batch", "new", GROUPS * SIZE], "v": ["batch", "new", GROUPS * SIZE],
        "past_k": ["batch", GROUPS, "past", SIZE], "past_v": ["batch", GROUPS, "past", SIZE],
    }  # fmt: skip
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in dims.items()]
    given.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "total"]))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "keys", "values")]
    constants = TURNS | {"one": np.array(1), "last": np.array([-1])}
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "tokens", given, results, tensors)
    proto = helper.make_model(graph, opset_imports=OPSETS, ir_version=8)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    loaded = load_any(proto, dims={"total": (16,)})
    assert isinstance(loaded, OpenModel)
    made: list[AnyModel] = []

    def build(part: AnyModel, shared: SharedWeights | None) -> Executable | HybridExecutable:
        made.append(part)
        return compile_any(part, Meaning, shared)

    served = OpenExecutable(loaded, build)
    inputs = inputs_of(1, 4, [5])
    past = {name: inputs[name] for name in ("past_k", "past_v")}
    for total in range(5, 15):
        inputs = {name: array for name, array in inputs_of(1, 4, [5]).items() if name in "qkv"}
        inputs |= past | {"mask": np.ones((1, total), np.int64)}
        found, expected = served(inputs), session.run(None, inputs)
        for ours, theirs in zip(found.values(), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
        past = {"past_k": found["keys"], "past_v": found["values"]}
    # The first three calls show that the mask and the caches grow together: neither has to, as caches may have room.
    assert len(made) <= 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kv_num_heads": 3}, "its 4 heads are no multiple of 3"),
        ({"k_quant_type": "PER_TENSOR"}, "its attribute 'k_quant_type'"),
        ({"num_heads": 0}, "'num_heads' must be a positive integer"),
    ],
)
def test_what_is_not_supported_is_told(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(model(inputs_of(1, 7, [8]), 8, **changed))
