"""The passes that a platform may run over loops before code is made of them; it names them, in their order, in its row.

Each is a function of loop IR to loop IR of the same meaning, whatever ran before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ansorlite.loops.emulate import emulate
from ansorlite.loops.fetch_ahead import fetch_ahead
from ansorlite.loops.nodes import Function
from ansorlite.loops.peel import peel
from ansorlite.loops.swizzle import swizzle
from ansorlite.loops.through_registers import through_registers
from ansorlite.target import Target


@dataclass(frozen=True)
class LoopPass:
    """A pass, by its name."""

    name: str
    apply: Callable[[Function, Target], Function]


EMULATE: Final = LoopPass("emulate", emulate)
FETCH_AHEAD: Final = LoopPass("fetch_ahead", fetch_ahead)
SWIZZLE: Final = LoopPass("swizzle", swizzle)
THROUGH_REGISTERS: Final = LoopPass("through_registers", through_registers)
PEEL: Final = LoopPass("peel", lambda function, _: peel(function))


def run(function: Function, passes: Sequence[LoopPass], target: Target) -> Function:
    """``function`` after ``passes``, one after another."""
    for each in passes:
        function = each.apply(function, target)
    return function
