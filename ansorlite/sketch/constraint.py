"""What a machine sets limits to: numbers of programs that may be so large at most, columns of :meth:`Space.valid`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansorlite.columns.tape import Number
from ansorlite.schedule.nest import Program
from ansorlite.target import Target


@dataclass(frozen=True)
class Constraint:
    """A limit of the programs of a platform.

    Attributes:
        what: is counted, for people, in the plural: ``"threads of a block"``.
        number: of them in a program: of one row, or a column of a population.
        most: that a machine takes.
    """

    what: str
    number: Callable[[Program, Target], Number]
    most: Callable[[Target], float]

    def holds(self, program: Program, target: Target) -> Number:
        """Flag: whether the program is within the limit."""
        return self.number(program, target) <= self.most(target)

    def said(self, target: Target) -> str:
        """For a message."""
        return f"at most {self.most(target):,} {self.what}"
