"""What must hold of rows, and is known only when their numbers are."""

from __future__ import annotations

from ansorlite.columns.arithmetic import both
from ansorlite.columns.tape import Column, Number
from ansorlite.errors import ScheduleError


class Conditions:
    """What must hold, as far as it was met in a fold.

    Attributes:
        valid: flag: whether all of it does.
    """

    def __init__(self) -> None:
        self.valid: Number = 1

    def require(self, flag: Number, problem: str) -> None:
        """Where it is not met the row is invalid.

        Raises:
            ScheduleError: there is one row, and it is not.
        """
        if isinstance(flag, Column):
            self.valid = both(self.valid, flag)
        elif not flag:
            raise ScheduleError(problem)
