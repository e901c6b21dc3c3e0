"""What a search strategy sees of a sketch: rows of ints, and nothing else."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansorlite.sketch.directions import Directions


class Space(Protocol):
    """The rows that fill the holes of one sketch.

    Rows are ``(n, holes)`` int64 arrays. Every row whose column ``h`` lies in ``range(sizes[h])`` decodes; whose choices do
    not go together, or make a program that the machine cannot run, is said by :meth:`valid`, and is never proposed. What
    :meth:`sample` and :meth:`neighbours` give is valid; what is bred of rows need not be. Every random draw comes from the
    generator given.
    """

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``(holes,)``: the number of values of each hole, at least 1."""
        ...

    @property
    def order(self) -> tuple[int, ...]:
        """The holes in the order in which a prefix is filled: structure first, details last."""
        ...

    @property
    def directions(self) -> Directions:
        """What can be done to a row; where that leads need not be valid."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` random valid rows."""
        ...

    def canonical(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """``(n, k)``: equal rows of the result if and only if the programs are equal."""
        ...

    def valid(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``(n,)``: whether the choices go together, and the target can run the program."""
        ...

    def neighbours(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """The valid rows one small step away from ``row``, which is ``(holes,)``."""
        ...

    def mutate(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Each row, one small random step away."""
        ...

    def crossover(self, a: NDArray[np.int64], b: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows that take each decision from the row of ``a`` or from that of ``b``."""
        ...

    def embed(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(n, d)``: coordinates in which near rows are similar programs."""
        ...

    def complete(self, prefixes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows that begin, in :attr:`order`, with the columns of ``prefixes``; the rest is random."""
        ...
