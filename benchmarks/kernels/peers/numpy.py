"""numpy, and the BLAS it comes with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.kernels.operators.operator import Array, Operator
from benchmarks.kernels.peers.peer import Contender
from benchmarks.kernels.results import Run


class Numpy:
    """Always there."""

    def missing(self) -> str:
        return ""

    def version(self) -> str:
        return np.__version__

    def contenders(self, operator: Operator, arrays: Sequence[Array], run: Run, records: Path | None) -> Mapping[str, Contender]:  # noqa: ARG002
        return {"numpy": Contender(lambda: operator.numpy(*arrays), np.asarray)}
