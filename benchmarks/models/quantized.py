"""Models quantised to 8 bits by onnxruntime's own quantiser.

Weights get 7 bits: on processors without dot products of bytes, onnxruntime sums pairs of products in 16 bits, and where these
overflow its results are wrong; see "reduce_range" in its documentation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from benchmarks.models.example import Array, Example, Source


class _Once(CalibrationDataReader):
    """Calibrates on one set of inputs: the ranges matter to the speed and to the comparison no further."""

    def __init__(self, inputs: Mapping[str, Array]) -> None:
        self._left = [dict(inputs)]

    def get_next(self) -> dict[str, Array] | None:
        return self._left.pop() if self._left else None


def static(source: Source, operators: Sequence[str] | None, form: QuantFormat = QuantFormat.QOperator) -> Source:
    """``operators`` on integers, or all that the quantiser knows, with scales from calibration.

    They are written as QLinearConv and QLinearMatMul, or, with ``QuantFormat.QDQ``, as float operators between
    DequantizeLinear and QuantizeLinear.
    """

    def quantized(rng: np.random.Generator) -> Example:
        example = source(rng)

        def convert(before: Path, after: Path) -> None:
            quantize_static(
                before,
                after,
                _Once(example.inputs),
                quant_format=form,
                op_types_to_quantize=None if operators is None else list(operators),
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                reduce_range=True,
            )

        return _converted(example, convert)

    return quantized


def dynamic(source: Source) -> Source:
    """Products on integers, with scales found while running: DynamicQuantizeLinear, MatMulInteger."""

    def quantized(rng: np.random.Generator) -> Example:
        def convert(before: Path, after: Path) -> None:
            quantize_dynamic(before, after, weight_type=QuantType.QInt8, reduce_range=True)

        return _converted(source(rng), convert)

    return quantized


def _converted(example: Example, convert: Callable[[Path, Path], None]) -> Example:
    """``convert`` goes from file to file."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "float.onnx", Path(folder) / "integer.onnx"
        before.write_bytes(example.data)
        convert(before, after)
        return Example(after.read_bytes(), example.inputs, None)
