"""Runs of neighbouring lines, in the order in which loops walk them.

What fetches ahead follows a run from line to line, and a few such runs side by side. Where one ends and another begins somewhere
else, its first lines are waited for (docs/decisions/runs-of-lines.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.alignment import CACHE_LINE
from ansorlite.columns.arithmetic import both, either, maximum, minimum, negated, select, total, where
from ansorlite.columns.tape import Number
from ansorlite.features.facts import Numbers


def starts(traffic: Sequence[Number], runs: Sequence[Number]) -> Number:
    """How many runs of so many lines the bytes of each access are, in all."""
    return total(nbytes / (run * CACHE_LINE) for nbytes, run in zip(traffic, runs, strict=True))


def side_by_side(
    runs: Sequence[Numbers], touched: Sequence[Numbers], traffic: Sequence[Number], outer: Numbers, straight: Number
) -> Number:
    """How many runs straight-line code fetches side by side, of all accesses; what is there from before does not count.

    Args:
        runs, touched: as :func:`walked_on` has them, of each access.
        traffic: bytes that are fetched for each access, in all.
        outer: by depth: how often the loops below run.
        straight: the depth of the straight-line code.
    """
    times = select(outer, straight) * CACHE_LINE
    return total(
        _beside(run, lines, straight) * minimum(nbytes / maximum(select(lines, straight) * times, 1), 1)
        for run, lines, nbytes in zip(runs, touched, traffic, strict=True)
    )


def _beside(runs: Numbers, touched: Numbers, straight: Number) -> Number:
    """How many runs one access walks side by side in straight-line code."""
    return select(touched, straight) / select(runs, straight)


def walked_on(runs: Numbers, touched: Numbers, straight: Number, followed: Number) -> Number:
    """Lines of the longest run that loops walk from one end to the other, perhaps with a few others beside it.

    Args:
        runs: of one access, by depth: lines of the longest run among all that the loops below touch.
        touched: by depth: how many lines these are.
        straight: the depth of the straight-line code, whose runs the loops around it go on with, as long as they begin no others.
        followed: whether the runs of all accesses are few enough to be followed side by side; of more each begins anew whenever
            its turn comes.
    """
    result, own = select(runs, straight), _beside(runs, touched, straight)
    together = followed
    for depth in reversed(range(len(runs) - 1)):
        if runs[depth] is not runs[depth + 1] or touched[depth] is not touched[depth + 1]:
            around = depth < straight
            together = both(together, either(negated(around), touched[depth] <= runs[depth] * own))
            result = where(both(together, around), runs[depth], result)
    return result
