"""Fourier transforms are products with constant matrices: against numpy's fast transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx import load_model
from ansorlite.graph.hybrid import HybridModel
from ansorlite.graph.model import Model
from tests.onnx.support import make_model, run

RNG = np.random.default_rng(0)


def parts(array: np.ndarray) -> np.ndarray:
    """Real and imaginary parts along a last dimension."""
    return np.stack([array.real, array.imag], -1).astype(np.float32)


def signal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def dft(x: np.ndarray, length: int | None, axis: int, opset: int = 20, **attributes: Any) -> onnx.ModelProto:
    constants = {} if length is None else {"length": np.array(length)}
    inputs = ["x", "" if length is None else "length"]
    if opset < 20:
        attributes["axis"] = axis
    else:
        inputs.append("axis")
        constants["axis"] = np.array(axis)
    return make_model([helper.make_node("DFT", inputs, ["y"], **attributes)], {"x": x}, ["y"], constants, opset)


def native(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    assert isinstance(load_model(model), Model)
    return run(model, {"x": x})["y"]


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_complex_numbers_there_and_back(length: int | None, axis: int, opset: int) -> None:
    data = signal(5, 6, 7)
    numpys = axis if axis >= 0 else axis + 1
    x = parts(data)
    np.testing.assert_allclose(native(dft(x, length, axis, opset), x), parts(np.fft.fft(data, length, numpys)), atol=1e-5)
    back = native(dft(x, length, axis, opset, inverse=1), x)
    np.testing.assert_allclose(back, parts(np.fft.ifft(data, length, numpys)), atol=1e-6)


@pytest.mark.parametrize("length", [None, 5, 6, 9])
def test_real_numbers_have_half_of_the_frequencies(length: int | None) -> None:
    data = RNG.standard_normal((2, 7, 3))
    x = data[..., None].astype(np.float32)
    np.testing.assert_allclose(native(dft(x, length, 1, onesided=1), x), parts(np.fft.rfft(data, length, 1)), atol=1e-5)
    np.testing.assert_allclose(native(dft(x, length, 1), x), parts(np.fft.fft(data, length, 1)), atol=1e-5)
    half = parts(signal(2, 7, 3))
    expected = np.fft.irfft(half[..., 0] + 1j * half[..., 1], length, 1)[..., None]
    np.testing.assert_allclose(native(dft(half, length, 1, inverse=1, onesided=1), half), expected, atol=1e-6)


def test_what_is_left_out_may_be_no_number() -> None:
    x = parts(signal(3, 8))
    x[:, 5:] = np.nan
    np.testing.assert_allclose(native(dft(x, 5, 1), x), parts(np.fft.fft(x[:, :5, 0] + 1j * x[:, :5, 1])), atol=1e-5)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("given", ["window", "length", "both"])
def test_short_time_transform(given: str, onesided: int) -> None:
    data, window = RNG.standard_normal((2, 33)), RNG.standard_normal(16).astype(np.float32)
    x = data[..., None].astype(np.float32)
    constants = {"step": np.array(4), "window": window, "length": np.array(16)}
    left_out = {"window": "length", "length": "window", "both": ""}[given]
    inputs = ["x", *("" if name == left_out else name for name in constants)]
    node = helper.make_node("STFT", inputs, ["y"], onesided=onesided)
    model = make_model([node], {"x": x}, ["y"], {name: array for name, array in constants.items() if name != left_out}, 17)
    frames = np.stack([data[:, begin : begin + 16] for begin in range(0, 18, 4)], 1) * (1 if left_out == "window" else window)
    expected = parts((np.fft.rfft if onesided else np.fft.fft)(frames))
    np.testing.assert_allclose(native(model, x), expected, atol=1e-5)


def test_a_signal_without_a_dimension_for_its_parts_is_real() -> None:
    x = RNG.standard_normal((2, 33)).astype(np.float32)
    node = helper.make_node("STFT", ["x", "step", "", "length"], ["y"])
    model = make_model([node], {"x": x}, ["y"], {"step": np.array(4), "length": np.array(16)}, 17)
    frames = np.stack([x[:, begin : begin + 16] for begin in range(0, 18, 4)], 1)
    np.testing.assert_allclose(native(model, x), parts(np.fft.rfft(frames)), atol=1e-5)


def test_short_time_transform_of_complex_numbers() -> None:
    data = signal(1, 20)
    x = parts(data)
    node = helper.make_node("STFT", ["x", "step", "", "length"], ["y"], onesided=0)
    model = make_model([node], {"x": x}, ["y"], {"step": np.array(3), "length": np.array(8)}, 17)
    frames = np.stack([data[:, begin : begin + 8] for begin in range(0, 13, 3)], 1)
    np.testing.assert_allclose(native(model, x), parts(np.fft.fft(frames)), atol=1e-5)


def test_long_rows_are_transformed_in_python() -> None:
    x = np.zeros((1, 1 << 12, 1), np.float32)
    model = load_model(dft(x, None, 1))
    assert isinstance(model, HybridModel)
    assert "a matrix of 33554432 elements" in model.fallbacks[0].reason


@pytest.mark.parametrize(("axis", "shape", "cause"), [(3, (2, 4, 5, 2), "axis 3 is none of"), (1, (2, 4, 3), "must be 1, real")])
def test_a_transform_that_there_is_not(axis: int, shape: tuple[int, ...], cause: str) -> None:
    node = helper.make_node("DFT", ["x"], ["y"], axis=axis)
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    with pytest.raises(ModelError, match=cause):
        load_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10))
