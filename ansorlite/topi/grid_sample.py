"""Sampling at places that a tensor gives, as spatial transformers do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor


class Interpolation(Enum):
    """How many elements a sample is made of, along each dimension, and their weights."""

    NEAREST = 1
    LINEAR = 2
    CUBIC = 4


class Outside(Enum):
    """What elements outside of the data are."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


def grid_sample(
    x: Tensor,
    grid: Tensor,
    *,
    interpolation: Interpolation = Interpolation.LINEAR,
    outside: Outside = Outside.ZEROS,
    align_corners: bool = False,
) -> Tensor:
    """Samples of ``x (n, c, spatial...)`` at ``grid (n, places..., d)``, → ``(n, c, places...)``.

    The last dimension of ``grid`` names a place by ``d`` coordinates, the last spatial dimension's first, from -1 to 1: from
    the first element's center to the last one's with ``align_corners``, else from the data's one edge to the other.

    Raises:
        ExpressionError: a grid that does not fit.
    """
    spatial = x.shape[2:]
    if grid.shape[0] != x.shape[0] or grid.shape[-1] != len(spatial):
        raise ExpressionError(f"grid_sample of {x.shape} needs a grid (n, places..., {len(spatial)}), not {grid.shape}")

    def place(*axes: Expr) -> Expr:
        """The coordinate in elements, brought back into the data."""
        value: Expr | None = None
        for d, extent in enumerate(spatial):
            own = _coordinate(grid[(*axes[:-1], len(spatial) - 1 - d)], extent, interpolation, outside, align_corners)
            value = own if value is None else te.if_then_else(axes[-1] == d, own, value)
        assert value is not None
        return te.cast(value, "float32")

    places = te.compute(grid.shape, place, name="places")
    taps = range(interpolation.value)

    def sample(n: Expr, c: Expr, *axes: Expr) -> Expr:
        centers = [places[(n, *axes, d)] for d in range(len(spatial))]
        total: Expr | None = None
        for offsets in itertools.product(taps, repeat=len(spatial)):
            term = _term(x, (n, c), centers, offsets, interpolation, outside, align_corners)
            total = term if total is None else total + term
        assert total is not None
        return te.cast(total, x.dtype)

    return te.compute((*x.shape[:2], *grid.shape[1:-1]), sample, name="grid_sample")


def _coordinate(value: Expr, extent: int, interpolation: Interpolation, outside: Outside, align_corners: bool) -> Expr:
    element = (value + 1.0) * (0.5 * (extent - 1)) if align_corners else ((value + 1.0) * float(extent) - 1.0) * 0.5
    if interpolation is Interpolation.NEAREST:
        element = te.round(element)
    low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
    if outside is Outside.ZEROS:
        return element
    inside = te.all(element >= low, element <= high)
    if outside is Outside.BORDER:
        return te.if_then_else(inside, element, te.minimum(te.maximum(element, 0.0), extent - 1.0))
    return te.if_then_else(inside, element, _reflected(element, low, high))


def _reflected(value: Expr, low: float, high: float) -> Expr:
    """``value`` folded back at both ends until it lies between them."""
    length = high - low
    if length <= 0:
        return te.cast(low, value.dtype)
    beyond = te.if_then_else(value < low, low - value, value - high)
    count = te.floor(beyond / length)
    rest = beyond - count * length
    even = count % 2.0 == 0.0
    from_low = te.if_then_else(even, rest + low, high - rest)
    from_high = te.if_then_else(even, high - rest, rest + low)
    return te.if_then_else(value < low, from_low, te.if_then_else(value > high, from_high, value))


def _term(
    x: Tensor,
    lead: tuple[Expr, Expr],
    centers: Sequence[Expr],
    offsets: Sequence[int],
    interpolation: Interpolation,
    outside: Outside,
    align_corners: bool,
) -> Expr:
    """One element near the place, times its weight."""
    indices: list[Expr] = []
    within: list[Expr] = []
    weight: Expr | None = None
    for center, offset, extent in zip(centers, offsets, x.shape[2:], strict=True):
        base = te.floor(center)
        at = base + float(offset - (interpolation.value - 1) // 2)
        own = _weight(te.abs(center - at), interpolation)
        weight = own if weight is None else weight * own
        if outside is Outside.REFLECTION:
            # Towards 0, as a conversion to an integer goes.
            folded = _reflected(at, *((0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)))
            at = te.if_then_else(folded < 0.0, te.ceil(folded), te.floor(folded))
        within.append(te.all(at >= 0.0, at <= extent - 1.0))
        indices.append(te.cast(te.minimum(te.maximum(at, 0.0), extent - 1.0), "int64"))
    assert weight is not None
    value = x[(*lead, *indices)]
    if outside is Outside.ZEROS:
        value = te.if_then_else(te.all(*within), value, te.cast(0, x.dtype))
    return value * weight


def _weight(distance: Expr, interpolation: Interpolation) -> Expr:
    match interpolation:
        case Interpolation.NEAREST:
            return te.cast(1.0, distance.dtype)
        case Interpolation.LINEAR:
            return te.maximum(1.0 - distance, 0.0)
    # Keys' kernel with a = -0.75.
    near = (distance * 1.25 - 2.25) * distance * distance + 1.0
    far = ((distance * -0.75 + 3.75) * distance - 6.0) * distance + 3.0
    return te.if_then_else(distance <= 1.0, near, te.if_then_else(distance < 2.0, far, 0.0))
