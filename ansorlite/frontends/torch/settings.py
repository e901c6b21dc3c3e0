"""The options of the backend."""

from __future__ import annotations

import os
from dataclasses import dataclass

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
    """

    database: str | os.PathLike[str] | None = None
    trials: int | None = None
    space: str | None = None
    target: str | Target | None = None
