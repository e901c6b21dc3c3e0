"""What became of one proposed program, as a strategy is told."""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.sketch.candidate import Candidate


@dataclass(frozen=True)
class Observation:
    """
    Attributes:
        latency: seconds of one call; ``None`` where the program failed.
        censored: whether it was stopped for being slow: ``latency`` is what it took until then, a lower bound.
    """

    candidate: Candidate
    latency: float | None = None
    censored: bool = False
