"""A strategy that asks a callable, which reads what was measured and says what to measure next: a language model for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from ansorlite.cost_model import CostModel
from ansorlite.errors import ArgumentError
from ansorlite.search.arm import Arm
from ansorlite.search.measured import MeasuredSearch, Rows
from ansorlite.search.protocol import SearchProblem

#: Of a text, rows: each a whole number for each hole.
Proposer: TypeAlias = Callable[[str], Sequence[Sequence[int]]]
#: What the text tells of: so many of the fastest programs, and of the latest.
_TOLD: Final = 16


class AskedSearch(MeasuredSearch):
    """Proposes what ``proposer`` says; what that leaves open, and what was measured before, is drawn at random.

    The text says how many rows are wanted, how many values each hole has, and what the fastest and the latest programs took.
    """

    def __init__(self, problem: SearchProblem, model: CostModel, rng: np.random.Generator, proposer: Proposer) -> None:
        super().__init__(problem, model, rng)
        self._proposer = proposer

    def choose(self, arm: Arm, n: int) -> Rows:
        """
        Raises:
            ArgumentError: the proposer gives something else than rows of the space.
        """
        said = self._proposer(text(arm, n))
        sizes = arm.space.sizes
        try:
            rows = np.array([[_whole(value) for value in row] for row in said], np.int64).reshape(-1, len(sizes))
            wrong = (rows < 0).any() or (rows >= sizes).any() or any(len(row) != len(sizes) for row in said)
        except (TypeError, ValueError, OverflowError):
            wrong = True
        if wrong:
            raise ArgumentError(
                f"the proposer gave {_short(said)}; it must give a list of rows, each of {len(sizes)} whole numbers below "
                f"{sizes.tolist()}"
            )
        return rows


def asking(proposer: Proposer) -> Callable[[SearchProblem, CostModel, np.random.Generator], AskedSearch]:
    """The maker of a strategy that asks ``proposer``: for ``al.tune(strategy=)``."""
    return lambda problem, model, rng: AskedSearch(problem, model, rng, proposer)


def text(arm: Arm, n: int) -> str:
    """What a proposer is told."""
    latencies, rows = arm.latencies, arm.rows
    order = np.argsort(latencies, kind="stable")[:_TOLD].tolist()
    latest = [at for at in range(max(0, len(latencies) - _TOLD), len(latencies)) if at not in order]
    lines = [f"{rows[at].tolist()} {latencies[at]:.6g} s" for at in [*order, *latest]]
    head = (
        f"Propose {n} rows. A row is a list of {len(arm.space.sizes)} whole numbers, from 0 to below {arm.space.sizes.tolist()}."
    )
    return "\n".join([head, "Measured so far (inf: it failed), the fastest first, then the latest:", *(lines or ["nothing"])])


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError
    return int(value)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:99]}…"
