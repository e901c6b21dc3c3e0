"""What another system brings to a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.kernels.operators.operator import Array, Operator
from benchmarks.kernels.results import Run


@dataclass(frozen=True)
class Contender:
    """A call that can be timed.

    Attributes:
        call: computes the output anew, as the system's users call it.
        output: of what ``call`` returns, as a numpy array.
    """

    call: Callable[[], Any]
    output: Callable[[Any], Array]


class Peer(Protocol):
    """Another system."""

    def missing(self) -> str:
        """Why it cannot take part; empty if it can."""

    def version(self) -> str:
        """Its version."""

    def contenders(self, operator: Operator, arrays: Sequence[Array], run: Run, records: Path | None) -> Mapping[str, Contender]:
        """Its ways to compute ``operator`` of ``arrays``, by name; none where it has no such kernel.

        Args:
            run: with how many threads; a tuner may have as many trials as ours.
            records: a folder in which a tuner keeps what it measures; ``None``: it is to keep nothing.
        """
