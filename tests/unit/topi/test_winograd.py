"""Winograd's matrices: the identity that they must fulfil, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ansorlite.errors import ExpressionError
from ansorlite.topi.winograd import POINTS, transforms


@pytest.mark.parametrize(("outputs", "taps"), [(2, 3), (4, 3), (6, 3), (2, 5), (3, 2), (1, 3), (2, 7), (4, 1)])
def test_matrices_compute_the_correlation(outputs: int, taps: int) -> None:
    """For unit vectors of both factors, as everything is linear in each of them."""
    found = transforms(outputs, taps)
    size = outputs + taps - 1
    assert len(found.data) == len(found.filter) == size
    for d in range(size):
        for t in range(taps):
            products = [row[t] * data[d] for row, data in zip(found.filter, found.data, strict=True)]
            result = [sum((a * p for a, p in zip(row, products, strict=True)), Fraction(0)) for row in found.inverse]
            assert result == [Fraction(int(y + t == d)) for y in range(outputs)]


def test_too_many_points() -> None:
    with pytest.raises(ExpressionError, match="points"):
        transforms(len(POINTS), 4)
