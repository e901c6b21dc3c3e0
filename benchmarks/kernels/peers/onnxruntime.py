"""onnxruntime, whose kernels are MLAS: with weights as inputs, and as constants, which it packs beforehand."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ansorlite.report.peers import has_onnxruntime, onnxruntime_session
from benchmarks.kernels.operators.operator import Array, Operator, onnx_model
from benchmarks.kernels.peers.peer import Contender
from benchmarks.kernels.results import Run


class Onnxruntime:
    """One session for each way."""

    def missing(self) -> str:
        return "" if has_onnxruntime() else "onnxruntime is not installed; install it with: pip install onnxruntime"

    def version(self) -> str:
        return str(importlib.import_module("onnxruntime").__version__)

    def contenders(self, operator: Operator, arrays: Sequence[Array], run: Run, records: Path | None) -> Mapping[str, Contender]:  # noqa: ARG002
        weights = {position: arrays[position] for position in operator.weights}
        ways = {"onnxruntime": {}, **({"onnxruntime constant": weights} if weights else {})}
        return {name: _contender(operator, arrays, constants, run.threads) for name, constants in ways.items()}


def _contender(operator: Operator, arrays: Sequence[Array], constants: Mapping[int, Array], threads: int) -> Contender:
    feeds = {f"x{n}": array for n, array in enumerate(arrays) if n not in constants}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        path.write_bytes(onnx_model(operator, constants).SerializeToString())
        return Contender(onnxruntime_session(str(path), threads, feeds), lambda outputs: np.asarray(outputs[0]))
