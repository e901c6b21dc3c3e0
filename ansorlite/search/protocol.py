"""What a search strategy is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansorlite.search.log import RoundLog
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.space import Space

#: Position of a sketch, and ``(n, holes)`` rows of it, to ``(n, statements, features)``.
Features: TypeAlias = Callable[[int, NDArray[np.int64]], NDArray[np.float64]]


@dataclass(frozen=True)
class SearchProblem:
    """One task as a strategy sees it: rows of ints and numbers about them.

    Attributes:
        signatures: the name of each sketch, as candidates carry it.
        spaces: the space of each sketch.
        features: what a cost model reads.
    """

    signatures: tuple[str, ...]
    spaces: tuple[Space, ...]
    features: Features


class Strategy(Protocol):
    """Proposes candidates of one task and learns from what they measured."""

    @property
    def rounds(self) -> tuple[RoundLog, ...]:
        """What each round proposed, expected and found; empty for a strategy that expects nothing."""
        ...

    def propose(self, n: int) -> list[Candidate]:
        """At most ``n`` candidates to measure next, none of which was proposed or observed before.

        Fewer when the spaces run out, and none, from then on, when they are spent.
        """
        ...

    def observe(self, results: Sequence[tuple[Candidate, float | None]]) -> None:
        """Learn latencies in seconds; ``None`` for a candidate that failed.

        They need not have been proposed: earlier measurements are taken in the same way, and are not proposed again.
        Candidates of sketches that are none of the problem's, the naive program for one, are passed over.
        """
        ...
