"""A case: one operator of one shape under a name."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.kernels.operators.operator import Operator


@dataclass(frozen=True)
class Case:
    """
    Attributes:
        name: unique in its suite.
    """

    name: str
    operator: Operator
