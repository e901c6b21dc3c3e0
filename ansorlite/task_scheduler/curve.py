"""What became of one task so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Curve:
    """The best latency of a task after each share of trials.

    Attributes:
        best: the lowest latency so far, seconds; ``inf`` if no program has run.
        after: ``best`` after each share.
        seconds: what its shares took in all.
        retired: whether the task has nothing left to try.
        handed_out: whether the task has been given a share that nothing is known of yet.
    """

    best: float = math.inf
    after: list[float] = field(default_factory=list)
    seconds: float = 0.0
    retired: bool = False
    handed_out: bool = False

    @property
    def shares(self) -> int:
        return len(self.after)

    @property
    def alive(self) -> bool:
        """Whether a share may be of use: a task of which nothing ran in a whole share is given up."""
        return not self.retired and (not self.after or math.isfinite(self.best))

    def update(self, latency: float | None, trials: int, seconds: float = 0.0) -> None:
        if latency is not None:
            self.best = min(self.best, latency)
        if self.handed_out or trials > 1:
            self.after.append(self.best)
            self.seconds += seconds
        self.retired |= trials == 0
        self.handed_out = False
