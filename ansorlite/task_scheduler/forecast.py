"""What the next share may be expected to give, judged by what the last ones gave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

#: Shares before which a curve is too short to be judged.
_LEAST_SHARES: Final = 4


def is_judged(after: Sequence[float]) -> bool:
    """Whether a curve tells enough for :func:`expected_fall` to be more than a hope."""
    return len(after) >= _LEAST_SHARES and math.isfinite(after[-1])


def expected_fall(after: Sequence[float]) -> float:
    """By which share of itself the best latency is expected to fall with the next share of trials.

    Whoever searches finds a new best ever more seldom: after ``t`` shares the next one is the best with a chance of about
    ``1 / t``, so the logarithm of the best falls along the logarithm of the shares. Its slope there is taken over the last
    three quarters of the shares, ``t / 4`` to ``t``.

    Args:
        after: the best latency after each share.

    Returns:
        0 where nothing was found in that time; ``1 / t`` while there are too few shares to judge by, 1 before the first.

    >>> expected_fall([4.0, 3.0, 2.0, 2.0]) > 0.1, expected_fall([4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    (True, 0.0)
    """
    shares = len(after)
    if not is_judged(after):
        return 1 / max(1, shares)
    begin = shares // 4
    slope = math.log(after[begin - 1] / after[-1]) / math.log(shares / begin) if math.isfinite(after[begin - 1]) else math.inf
    return -math.expm1(slope * math.log(shares / (shares + 1)))
