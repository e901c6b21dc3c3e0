"""What a search strategy is, and what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansorlite.cost_model.protocol import Prior
from ansorlite.features.loop_tree import LoopTree
from ansorlite.search.log import RoundLog
from ansorlite.search.observation import Observation
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.space import Space


class Described(Protocol):
    """What is known of the programs of some rows, ``n`` of them."""

    @property
    def features(self) -> NDArray[np.float64]:
        """``(n, statements, features)``."""
        ...

    @property
    def knobs(self) -> NDArray[np.float64]:
        """``(n, d)``: coordinates in which near rows are similar programs."""
        ...

    @property
    def tokens(self) -> NDArray[np.float64]:
        """``(n, primitives, len(TOKEN))``: their traces."""
        ...

    @property
    def loops(self) -> LoopTree:
        """Their loops."""
        ...


class SearchSpace(Protocol):
    """The programs of one sketch: :class:`ansorlite.features.programs.ProgramSpace`, or those of a recorded table."""

    @property
    def space(self) -> Space:
        """The rows that fill its holes."""
        ...

    def programs(self, rows: NDArray[np.int64]) -> Described:
        """What is known of the programs of ``rows``, ``(n, holes)``."""
        ...

    def candidate(self, row: tuple[int, ...]) -> Candidate:
        """The program of one row as what is measured and recorded."""
        ...

    def row_of(self, candidate: Candidate) -> tuple[int, ...] | None:
        """The row of a program; ``None`` if it is none of this space."""
        ...


@dataclass(frozen=True)
class SearchProblem:
    """One task as a strategy sees it: spaces of rows of ints, and numbers about the programs of rows.

    Attributes:
        spaces: those of the task's sketches.
        prior: what is known of programs before any is measured, from their features: higher is faster; ``None`` if nothing is.
    """

    spaces: tuple[SearchSpace, ...]
    prior: Prior | None = None

    def locate(self, candidate: Candidate) -> tuple[int, tuple[int, ...]] | None:
        """The position of the space that has a program, and its row there; ``None`` if none has."""
        for position, space in enumerate(self.spaces):
            row = space.row_of(candidate)
            if row is not None:
                return position, row
        return None


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

    def observe(self, results: Sequence[Observation]) -> None:
        """Learn what became of candidates.

        They need not have been proposed: earlier measurements are taken in the same way, and are not proposed again.
        Programs that are in none of the problem's spaces, the naive program for one, are passed over.
        """
        ...
