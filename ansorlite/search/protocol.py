"""What a search strategy is, and what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ansorlite.features.programs import ProgramSpace
from ansorlite.search.log import RoundLog
from ansorlite.sketch.candidate import Candidate


@dataclass(frozen=True)
class SearchProblem:
    """One task as a strategy sees it: spaces of rows of ints, and numbers about the programs of rows.

    Attributes:
        spaces: those of the task's sketches.
    """

    spaces: tuple[ProgramSpace, ...]

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

    def observe(self, results: Sequence[tuple[Candidate, float | None]]) -> None:
        """Learn latencies in seconds; ``None`` for a candidate that failed.

        They need not have been proposed: earlier measurements are taken in the same way, and are not proposed again.
        Programs that are in none of the problem's spaces, the naive program for one, are passed over.
        """
        ...
