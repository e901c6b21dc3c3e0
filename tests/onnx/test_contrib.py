"""Operators of onnxruntime's own, each beside onnxruntime without optimisations."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'ansorlite[peers]'")

import onnxruntime

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.onnx.contrib.table import DEFINITIONS
from ansorlite.graph.model import Model
from tests.onnx.support import make_model, run

Array = np.ndarray


class Case:
    """One node.

    Attributes:
        inputs: input name → array, in order; ``""`` and numbers after it stand for inputs that are not given.
        constant: which of them are.
        results: how many are wanted.
        atol: how far results may be from onnxruntime's: one step of a quantised result, where its halves round otherwise.
    """

    def __init__(
        self,
        operator: str,
        inputs: Mapping[str, Array],
        constant: str = "",
        results: int = 1,
        atol: float = 1e-5,
        **attributes: Any,
    ) -> None:
        self.operator, self.constant = operator, constant.split()
        self.inputs = {name: np.asarray(array) for name, array in inputs.items()}
        self.results, self.atol, self.attributes = results, atol, attributes

    def model(self, wanted: Sequence[Array] | None = None) -> onnx.ModelProto:
        """With types of the results, if they are known."""
        names = ["" if name.startswith("-") else name for name in self.inputs]
        outputs = [f"r{number}" for number in range(self.results)]
        domain = "" if self.operator == "SimplifiedLayerNormalization" else "com.microsoft"
        node = helper.make_node(self.operator, names, outputs, domain=domain, **self.attributes)
        given = {name: array for name, array in self.inputs.items() if not name.startswith("-")}
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
            if name not in self.constant
        ]
        constants = [numpy_helper.from_array(given[name], name) for name in self.constant]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        for result, array in zip(results, wanted or (), strict=False):
            result.type.CopyFrom(helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        graph = helper.make_graph([node], "one", infos, results, constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    @property
    def given(self) -> dict[str, Array]:
        return {name: array for name, array in self.inputs.items() if name not in self.constant and not name.startswith("-")}


def theirs(case: Case) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(case.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, case.given))


RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def byte(*shape: int, dtype: type = np.uint8) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def steps(name: str, scale: float, zero: int, dtype: type = np.uint8) -> dict[str, Array]:
    return {f"{name}s": np.asarray(scale, np.float32), f"{name}z": np.asarray(zero, dtype)}


def quantised(**shapes: Sequence[int]) -> dict[str, Array]:
    """Inputs of bytes, each with its scale and its zero point."""
    found: dict[str, Array] = {}
    for number, (name, shape) in enumerate(shapes.items()):
        found |= {name: byte(*shape), **steps(name, 0.02 + 0.01 * number, 120 + number)}
    return found


RESULT = steps("r", 0.05, 118)
BATCH, LENGTH, HEADS, SIZE = 2, 5, 3, 4
WIDTH = HEADS * SIZE
X = normal(BATCH, LENGTH, WIDTH)
PROJECTION = {"x": X, "w": normal(WIDTH, 3 * WIDTH) / 3, "b": normal(3 * WIDTH)}
PAST = {"-1": X, "past": normal(2, BATCH, HEADS, 3, SIZE)}
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
BYTES_OF_4_BITS = {"x": normal(2, 3, 40), "w": byte(6, 3, 8), "s": normal(18)}
TURNS = {"cos": np.cos(normal(9, 2)), "sin": np.sin(normal(9, 2))}

CASES = {
    "Gelu": Case("Gelu", {"x": X}),
    "BiasGelu": Case("BiasGelu", {"x": X, "b": normal(WIDTH)}),
    "FastGelu": Case("FastGelu", {"x": X, "b": normal(WIDTH)}),
    "FastGelu without bias": Case("FastGelu", {"x": X}),
    "QuickGelu": Case("QuickGelu", {"x": X}, alpha=1.5),
    "FusedMatMul": Case("FusedMatMul", {"a": normal(2, 4, 3), "b": normal(2, 5, 4)}, transA=1, transB=1, alpha=0.5),
    "FusedMatMul of a vector": Case("FusedMatMul", {"a": normal(4), "b": normal(5, 4)}, transB=1),
    "FusedGemm": Case(
        "FusedGemm", {"a": normal(3, 4), "b": normal(5, 4), "c": normal(5)}, transB=1, alpha=2.0, activation="Relu"
    ),
    "FusedGemm leaky": Case(
        "FusedGemm", {"a": normal(3, 4), "b": normal(4, 5)}, activation="LeakyRelu", activation_alpha=0.3, beta=0.5
    ),
    "FusedConv": Case(
        "FusedConv",
        {"x": normal(1, 4, 6, 6), "w": normal(2, 4, 3, 3), "b": normal(2), "z": normal(1, 2, 6, 6)},
        "w b",
        pads=[1, 1, 1, 1],
        activation="Relu",
    ),
    "FusedConv limited": Case(
        "FusedConv",
        {"x": normal(1, 4, 6, 6), "w": normal(4, 1, 3, 3)},
        "w",
        group=4,
        activation="Clip",
        activation_params=[-0.5, 1.0],
    ),
    "FusedConv hard": Case(
        "FusedConv", {"x": normal(1, 2, 5, 5), "w": normal(2, 2, 1, 1)}, activation="HardSigmoid", activation_params=[0.3, 0.4]
    ),
    "SkipLayerNormalization": Case(
        "SkipLayerNormalization",
        {"x": X, "y": X[::-1] * 2, "g": normal(WIDTH), "b": normal(WIDTH), "c": normal(WIDTH)},
        epsilon=1e-3,
    ),
    "SkipLayerNormalization without more": Case("SkipLayerNormalization", {"x": X, "y": X[:1], "g": normal(WIDTH)}),
    "SkipSimplifiedLayerNormalization": Case(
        "SkipSimplifiedLayerNormalization", {"x": X, "y": X * 2, "g": normal(WIDTH), "c": normal(WIDTH)}, epsilon=1e-5
    ),
    "SimplifiedLayerNormalization": Case("SimplifiedLayerNormalization", {"x": X, "g": normal(WIDTH)}, epsilon=1e-5, axis=-1),
    "EmbedLayerNormalization": Case(
        "EmbedLayerNormalization",
        {
            "ids": RNG.integers(0, 9, (2, 5)).astype(np.int32),
            "kinds": RNG.integers(0, 2, (2, 5)).astype(np.int32),
            "words": normal(9, 8),
            "places": normal(12, 8),
            "segments": normal(2, 8),
            "g": normal(8),
            "b": normal(8),
            "mask": MASK,
        },
        "words places segments g b",
        2,
    ),
    "EmbedLayerNormalization of places": Case(
        "EmbedLayerNormalization",
        {
            "ids": RNG.integers(0, 9, (2, 5)).astype(np.int32),
            "-1": X,
            "words": normal(9, 8),
            "places": normal(12, 8),
            "-4": X,
            "g": normal(8),
            "b": normal(8),
            "-7": X,
            "at": RNG.integers(0, 12, (2, 5)).astype(np.int32),
        },
        "words places g b",
        3,
    ),
    "QEmbedLayerNormalization": Case(
        "QEmbedLayerNormalization",
        {
            "ids": RNG.integers(0, 9, (2, 5)).astype(np.int32),
            "kinds": RNG.integers(0, 2, (2, 5)).astype(np.int32),
            "words": byte(9, 8),
            "places": byte(12, 8),
            "segments": byte(2, 8),
            "g": byte(8),
            "b": byte(8),
            "mask": MASK,
            **{f"s{n}": np.float32(0.01 + 0.003 * n) for n in range(5)},
            **{f"z{n}": np.uint8(120 + n) for n in range(5)},
        },
        "words places segments g b s0 s1 s2 s3 s4 z0 z1 z2 z3 z4",
        2,
    ),
    "Attention": Case("Attention", PROJECTION, "w b", num_heads=HEADS),
    "Attention of what is before": Case("Attention", PROJECTION, "w b", num_heads=HEADS, unidirectional=1, scale=0.3),
    "Attention with a mask": Case("Attention", PROJECTION | {"m": MASK}, "w b", num_heads=HEADS),
    "Attention with lengths": Case("Attention", PROJECTION | {"m": MASK.sum(1, dtype=np.int32)}, "w b", num_heads=HEADS),
    "Attention with beginnings": Case("Attention", PROJECTION | {"m": np.array([3, 5, 1, 2], np.int32)}, "w b", num_heads=HEADS),
    "Attention with a mask for each query": Case(
        "Attention", PROJECTION | {"m": np.maximum(np.eye(5, dtype=np.int32), MASK[:, None])}, "w b", num_heads=HEADS
    ),
    "Attention with a bias": Case(
        "Attention", PROJECTION | {"-1": X, "-2": X, "bias": normal(1, HEADS, LENGTH, LENGTH)}, "w b", num_heads=HEADS
    ),
    "Attention with a past": Case("Attention", PROJECTION | PAST, "w b", 2, num_heads=HEADS, unidirectional=1),
    "Attention of other widths": Case(
        "Attention",
        {"x": X, "w": normal(WIDTH, 2 * WIDTH + 6), "b": normal(2 * WIDTH + 6)},
        "w b",
        num_heads=HEADS,
        qkv_hidden_sizes=[WIDTH, WIDTH, 6],
    ),
    "QAttention": Case(
        "QAttention",
        {
            "x": byte(BATCH, LENGTH, WIDTH),
            "w": byte(WIDTH, 3 * WIDTH, dtype=np.int8),
            "b": normal(3 * WIDTH),
            "xs": np.float32(0.02),
            "ws": np.float32(0.01),
            "m": MASK,
            "xz": np.uint8(120),
            "wz": np.int8(3),
        },
        "w b ws wz",
        num_heads=HEADS,
    ),
    "MultiHeadAttention": Case("MultiHeadAttention", {"q": X, "k": X[::-1], "v": X * 2, "b": normal(3 * WIDTH)}, num_heads=HEADS),
    "MultiHeadAttention across": Case(
        "MultiHeadAttention", {"q": X, "k": normal(BATCH, 7, WIDTH), "v": normal(BATCH, 7, WIDTH)}, num_heads=HEADS, scale=0.2
    ),
    "MultiHeadAttention across by heads": Case(
        "MultiHeadAttention",
        {"q": X, "k": normal(BATCH, HEADS, 7, SIZE), "v": normal(BATCH, HEADS, 7, SIZE)},
        num_heads=HEADS,
    ),
    "MultiHeadAttention with a mask": Case(
        "MultiHeadAttention", {"q": X, "k": X, "v": X, "-1": X, "m": MASK, "bias": normal(1, 1, LENGTH, LENGTH)}, num_heads=HEADS
    ),
    "MultiHeadAttention with a past": Case(
        "MultiHeadAttention",
        {
            "q": X,
            "k": X,
            "v": X,
            "-1": X,
            "-2": X,
            "-3": X,
            "pk": normal(BATCH, HEADS, 3, SIZE),
            "pv": normal(BATCH, HEADS, 3, SIZE),
        },
        results=3,
        num_heads=HEADS,
        unidirectional=1,
    ),
    "RotaryEmbedding": Case(
        "RotaryEmbedding", {"x": normal(2, 5, 12), "p": RNG.integers(0, 9, (2, 5)), **TURNS}, "cos sin", interleaved=1
    ),
    "RotaryEmbedding from a place on": Case("RotaryEmbedding", {"x": normal(2, 3, 5, 4), "p": np.array([2]), **TURNS}, "cos sin"),
    "QuantizeLinear": Case("QuantizeLinear", {"x": X, **steps("x", 0.02, 117)}, atol=1),
    "DequantizeLinear": Case(
        "DequantizeLinear",
        {"x": byte(2, 3), "s": np.array([0.1, 0.2, 0.3], np.float32), "z": np.array([1, 2, 3], np.uint8)},
        axis=1,
    ),
    "QLinearAdd": Case("QLinearAdd", quantised(a=(2, 3, 4), b=(4,)) | RESULT, atol=1),
    "QLinearMul": Case("QLinearMul", quantised(a=(2, 3, 4), b=(3, 1)) | RESULT, atol=1),
    "QLinearSigmoid": Case("QLinearSigmoid", quantised(a=(3, 5)) | steps("r", 1 / 256, 0), "as az rs rz", atol=1),
    "QLinearLeakyRelu": Case("QLinearLeakyRelu", quantised(a=(3, 5)) | RESULT, "as az rs rz", atol=1, alpha=0.2),
    "QLinearGlobalAveragePool": Case("QLinearGlobalAveragePool", quantised(a=(2, 3, 4, 5)) | RESULT, atol=1),
    "QLinearAveragePool": Case(
        "QLinearAveragePool", quantised(a=(2, 3, 6, 6)) | RESULT, atol=1, kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1]
    ),
    "QLinearConcat": Case("QLinearConcat", RESULT | quantised(a=(2, 3), b=(2, 4)), "rs rz as az bs bz", atol=1, axis=1),
    "QLinearSoftmax": Case(
        "QLinearSoftmax", quantised(a=(3, 5)) | steps("r", 1 / 256, 0), "as az rs rz", atol=1, axis=-1, opset=13
    ),
    "QLinearWhere": Case(
        "QLinearWhere", {"c": RNG.random((3, 4)) < 0.5, **quantised(a=(3, 4), b=(4,)), **RESULT}, "as az bs bz rs rz", atol=1
    ),
    "QGemm": Case(
        "QGemm",
        quantised(a=(3, 4), b=(5, 4)) | {"c": RNG.integers(-900, 900, 5).astype(np.int32)} | RESULT,
        "b c",
        atol=1,
        transB=1,
        alpha=0.5,
    ),
    "QGemm as numbers": Case(
        "QGemm",
        {
            **quantised(a=(3, 4)),
            "b": byte(4, 5, dtype=np.int8),
            "bs": np.linspace(0.01, 0.02, 5, dtype=np.float32),
            "bz": np.zeros(5, np.int8),
            "c": RNG.integers(-900, 900, 5).astype(np.int32),
        },
        "b bs bz c",
    ),
    "DynamicQuantizeMatMul": Case(
        "DynamicQuantizeMatMul",
        {"a": normal(3, 4), "b": byte(4, 5), "bs": np.float32(0.02), "bz": np.uint8(120), "c": normal(5)},
        "b bs bz c",
        atol=1e-4,
    ),
    "MatMulIntegerToFloat": Case(
        "MatMulIntegerToFloat",
        {
            "a": byte(3, 4),
            "b": byte(4, 5),
            "as": np.float32(0.1),
            "bs": np.float32(0.02),
            "az": np.uint8(130),
            "bz": np.uint8(120),
        },
        "b",
    ),
    "MatMulNBits": Case("MatMulNBits", BYTES_OF_4_BITS, "w s", atol=1e-4, K=40, N=6, bits=4, block_size=16),
    "MatMulNBits with zero points": Case(
        "MatMulNBits", BYTES_OF_4_BITS | {"z": byte(12)}, "w s z", atol=1e-4, K=40, N=6, bits=4, block_size=16
    ),
    "MatMulNBits of a few rows": Case(
        "MatMulNBits",
        {"x": normal(2, 3, 32), "w": byte(6, 2, 8), "s": normal(6, 2), "z": byte(6, 1), "-1": X, "b": normal(6)},
        "w s z b",
        atol=1e-4,
        K=32,
        N=6,
        bits=4,
        block_size=16,
    ),
    "MatMulNBits of many rows": Case(
        "MatMulNBits",
        {"x": normal(9, 32), "w": byte(6, 2, 8), "s": normal(12)},
        "w s",
        atol=1e-4,
        K=32,
        N=6,
        bits=4,
        block_size=16,
    ),
    "MatMulNBits of 8 bits and many rows": Case(
        "MatMulNBits",
        {"x": normal(9, 32), "w": byte(6, 2, 16), "s": normal(12)},
        "w s",
        atol=2e-3,
        K=32,
        N=6,
        bits=8,
        block_size=16,
    ),
    "MatMulNBits of 8 bits": Case(
        "MatMulNBits",
        {"x": normal(2, 32), "w": byte(6, 2, 16), "s": normal(12)},
        "w s",
        atol=2e-3,
        K=32,
        N=6,
        bits=8,
        block_size=16,
    ),
}


def test_every_operator_is_compared() -> None:
    elsewhere = {"GroupQueryAttention"}  # test_grouped.py
    assert {case.operator for case in CASES.values()} | elsewhere == set(DEFINITIONS)


@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime_has_it(name: str) -> None:
    case = CASES[name]
    expected = theirs(case)
    model = case.model(expected)
    assert isinstance(load_model(model), Model), "it is native"
    for found, wanted in zip(run(model, case.given).values(), expected, strict=True):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=case.atol)


def test_a_normalisation_before_onnx_had_one() -> None:
    """onnxruntime's optimiser writes it in models of older opsets."""
    node = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], epsilon=1e-3)
    arrays = {"x": X, "g": normal(WIDTH), "b": normal(WIDTH)}
    model = make_model([node], arrays, ["y"])
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 12))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(run(model, arrays)["y"], session.run(None, arrays)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            Case("Attention", PROJECTION, num_heads=HEADS, do_rotary=1),
            "is not supported as it is here: its attribute 'do_rotary'",
        ),
        (Case("Attention", PROJECTION), "its attribute 'num_heads' must be a positive integer"),
        (Case("FusedConv", {"x": normal(1, 1, 3, 3), "w": normal(1, 1, 1, 1)}, activation="Gelu"), "its activation 'Gelu'"),
        (Case("MultiHeadAttention", {"q": normal(2, 3, 2, 3, 4)}, num_heads=2), "queries, keys and values in one array"),
        (
            Case("MatMulNBits", {"x": normal(2, 32), "w": byte(6, 2, 9), "s": normal(12)}, K=32, N=6, block_size=16),
            "are not 6 rows of 2",
        ),
        (
            Case(
                "MatMulNBits",
                {"x": normal(2, 32), "w": byte(6, 2, 8), "s": normal(12), "z": byte(5)},
                "z",
                K=32,
                N=6,
                block_size=16,
            ),
            r"its zero points have shape \(5,\); there must be 1 for each of 6 rows",
        ),
        (Case("SwiGLU", {"x": X}), "needs operator com.microsoft.SwiGLU, which is not supported"),
    ],
)
def test_what_is_not_supported_is_told(case: Case, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(case.model([X]))


def damaged(case: Case, rng: np.random.Generator) -> onnx.ModelProto:
    """The node with one thing about it that it should not have."""
    inputs, attributes = dict(case.inputs), dict(case.attributes)
    names = [name for name in inputs if not name.startswith("-")]
    match rng.integers(4 if attributes else 3):
        case 0:
            del inputs[str(rng.choice(names))]
        case 1:
            name = str(rng.choice(names))
            inputs[name] = inputs[name][None] if rng.random() < 0.5 else inputs[name].reshape(-1)
        case 2:
            name = str(rng.choice(names))
            inputs[name] = np.concatenate([np.atleast_1d(inputs[name])] * 2, -1)
        case _:
            name = str(rng.choice(list(attributes)))
            attributes[name] = [0, -1, 7, 1 << 40, 0.5, "odd", [1, 2]][rng.integers(7)]
    constants = " ".join(name for name in case.constant if name in inputs)
    return Case(case.operator, inputs, constant=constants, results=case.results, **attributes).model([X] * case.results)


@pytest.mark.parametrize("name", CASES)
def test_damaged_nodes_are_told_or_run(name: str) -> None:
    for seed in range(12):
        model = damaged(CASES[name], np.random.default_rng((seed, *name.encode())))
        with contextlib.suppress(ModelError):
            load_model(model)
