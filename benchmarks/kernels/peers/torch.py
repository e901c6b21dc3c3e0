"""Eager PyTorch on the CPU, which calls oneDNN and MKL."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernels.operators.operator import Array, Operator
from benchmarks.kernels.peers.peer import Contender
from benchmarks.kernels.results import Run


class Torch:
    """Called without gradients, on tensors that are ready."""

    def missing(self) -> str:
        return "" if importlib.util.find_spec("torch") else "PyTorch is not installed; install it with: pip install torch"

    def version(self) -> str:
        return str(_module().__version__)

    def contenders(self, operator: Operator, arrays: Sequence[Array], run: Run, records: Path | None) -> Mapping[str, Contender]:  # noqa: ARG002
        torch = _module()
        torch.set_num_threads(run.threads)
        torch.set_grad_enabled(False)
        tensors = [torch.from_numpy(array) for array in arrays]
        if operator.torch(torch, *tensors) is None:
            return {}
        return {"torch": Contender(lambda: operator.torch(torch, *tensors), lambda tensor: tensor.numpy())}


def _module() -> Any:
    """Imported only when asked for: it is no dependency, and takes seconds."""
    return importlib.import_module("torch")
