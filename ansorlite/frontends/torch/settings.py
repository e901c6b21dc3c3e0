"""The options of the backend."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansorlite.graph.precision import check_precision
from ansorlite.target import Target


@dataclass(frozen=True)
class Settings:
    """
    Attributes:
        database: of measurements, as for :func:`ansorlite.compile`.
        trials: so many measurements each graph is tuned with, those in the database included; by default none are made.
        space: programs of your own to search, as for :func:`ansorlite.compile`.
        target: that programs are made for, as for :class:`ansorlite.Task`; by default the processor, or the GPU that the tensors
            are on.
        precision: what products of float32 multiply, as for :func:`ansorlite.from_onnx`.
    """

    database: str | os.PathLike[str] | None = None
    trials: int | None = None
    space: str | None = None
    target: str | Target | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        """
        Raises:
            ArgumentError: another precision than there are.
        """
        check_precision(self.precision)
