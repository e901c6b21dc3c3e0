"""Winograd's short convolutions: ``m`` neighbouring outputs of a filter of ``r`` taps from ``m + r - 1`` products.

For every dimension there are three small matrices (Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural
Networks")::

    y = inverse @ ((filter @ g) * (data @ d))        # d: m + r - 1 elements, g: r taps, y: m outputs

They are Toom's and Cook's evaluation of polynomials at ``m + r - 2`` points and at infinity, transposed, and made
here from the points, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr

Matrix = tuple[tuple[Fraction, ...], ...]

#: Where polynomials are evaluated, in order of preference: small numbers and their inverses round least
#: (Barabasz, Anderson, Soodhalter and Gregg 2020, "Error Analysis and Improving the Accuracy of Winograd Convolution").
POINTS: Final = tuple(Fraction(n, d) for n, d in ((0, 1), (1, 1), (-1, 1), (1, 2), (-2, 1), (-1, 2), (2, 1)))


@dataclass(frozen=True)
class Transforms:
    """The matrices of one dimension, ``a = m + r - 1``.

    Attributes:
        data: ``(a, a)``.
        filter: ``(a, r)``.
        inverse: ``(m, a)``.
    """

    data: Matrix
    filter: Matrix
    inverse: Matrix


@lru_cache(maxsize=64)
def transforms(outputs: int, taps: int) -> Transforms:
    """The matrices for ``outputs`` (m) neighbouring outputs of a filter of ``taps`` (r) taps.

    Raises:
        ExpressionError: there are not enough points for so many.
    """
    finite = outputs + taps - 2
    if outputs < 1 or taps < 1 or finite > len(POINTS):
        raise ExpressionError(f"F({outputs}, {taps}) needs {finite} points; Winograd's convolution has {len(POINTS)} here")
    points = POINTS[:finite]
    data, scales = [], []
    for point in points:
        others = [p for p in points if p != point]
        data.append((*_monic(others), Fraction(0)))
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        scales.append(scale)
    data.append(_monic(points))
    infinity = (Fraction(0),) * (taps - 1) + (Fraction(1),)
    at_points = tuple(tuple(p**n / scale for n in range(taps)) for p, scale in zip(points, scales, strict=True))
    powers = [(*(p**n for p in points), Fraction(int(n == outputs - 1))) for n in range(outputs)]
    return Transforms(tuple(data), (*at_points, infinity), tuple(powers))


def _monic(roots: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of ``product(x - root)``, lowest power first."""
    result: tuple[Fraction, ...] = (Fraction(1),)
    for root in roots:
        shifted, scaled = (Fraction(0), *result), (*(c * -root for c in result), Fraction(0))
        result = tuple(a + b for a, b in zip(shifted, scaled, strict=True))
    return result


def product(matrix: Matrix, row: Expr, elements: Sequence[Expr]) -> Expr:
    """Element ``row`` of ``matrix @ elements``, without the products with 0: a choice among as many sums as there are rows."""
    sums = [_weighted(coefficients, elements) for coefficients in matrix]
    result = sums[-1]
    for number in reversed(range(len(sums) - 1)):
        result = te.if_then_else(row == number, sums[number], result)
    return result


def _weighted(coefficients: Sequence[Fraction], elements: Sequence[Expr]) -> Expr:
    total: Expr | None = None
    for coefficient, element in zip(coefficients, elements, strict=True):
        if coefficient == 0:
            continue
        term = element if abs(coefficient) == 1 else element * float(abs(coefficient))
        signed = term if coefficient > 0 else -term
        total = signed if total is None else total + term if coefficient > 0 else total - term
    assert total is not None
    return total
