"""Runs of neighbouring lines, in the order in which loops walk them.

What fetches ahead follows a run from line to line, and a few such runs side by side. Where one ends and another begins somewhere
else, its first lines are waited for (docs/decisions/runs-of-lines.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.alignment import CACHE_LINE
from ansorlite.columns.arithmetic import both, either, negated, select, total, where
from ansorlite.columns.tape import Number
from ansorlite.features.facts import Numbers


def starts(traffic: Sequence[Number], runs: Sequence[Number]) -> Number:
    """How many runs of so many lines the bytes of each access are, in all."""
    return total(nbytes / (run * CACHE_LINE) for nbytes, run in zip(traffic, runs, strict=True))


def walked_on(runs: Numbers, touched: Numbers, straight: Number, streams: float) -> Number:
    """Lines of the longest run that loops walk from one end to the other, perhaps with a few others beside it.

    Args:
        runs: of one access, by depth: lines of the longest run among all that the loops below touch.
        touched: by depth: how many lines these are.
        straight: the depth of the straight-line code, whose runs the loops around it go on with, as long as they begin no others.
        streams: so many runs side by side are followed; of more each begins anew whenever its turn comes.
    """
    result = select(runs, straight)
    beside = select(touched, straight) / result
    together: Number = beside <= streams
    for depth in reversed(range(len(runs) - 1)):
        if runs[depth] is not runs[depth + 1] or touched[depth] is not touched[depth + 1]:
            around = depth < straight
            together = both(together, either(negated(around), touched[depth] <= runs[depth] * beside))
            result = where(both(together, around), runs[depth], result)
    return result
