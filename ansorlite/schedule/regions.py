"""Which box of a producer the loops below a place of its anchor need: bound inference, done once per sketch.

For every dimension of every stage attached to an anchor there is one static form over the *anchor's* axes. With the
sizes of the anchor's tiles (ints, or columns of a population) the form gives the box's extent; with the tile's lower
corner (loop variables) it gives the box's lower corner. Nothing is inferred again per candidate.

A box is always as long as its form says and lies within the tensor: it is shifted inwards at the edges, never cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorlite.analysis.access import accesses
from ansorlite.columns.arithmetic import minimum
from ansorlite.columns.tape import Number
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis, Expr
from ansorlite.te.index.form import Affine
from ansorlite.te.index.ranges import bounds
from ansorlite.te.tensor import Tensor


@dataclass(frozen=True)
class Box:
    """One dimension of a region: elements ``[low, low + length)`` with ``low = sum(c * end) + constant``.

    Attributes:
        terms: (anchor axis, coefficient c); ``end`` is the tile's lower corner, for a negative c its last element.
        constant: added to the lower corner.
        extra: the length is ``1 + extra + sum(|c| * (tile - 1))``.
    """

    terms: tuple[tuple[Axis, int], ...]
    constant: int
    extra: int

    def length(self, sizes: Mapping[Axis, Number], extent: int) -> Number:
        """How many elements, at most ``extent``, for tiles of ``sizes``."""
        total: Number = 1 + self.extra
        for axis, coefficient in self.terms:
            total = total + abs(coefficient) * (sizes[axis] - 1)
        return minimum(total, extent)

    @property
    def reach(self) -> tuple[int, int]:
        """The first element of all boxes, and the last."""
        low = self.constant + sum(min(c, 0) * (axis.extent - 1) for axis, c in self.terms)
        return low, self.constant + self.extra + sum(max(c, 0) * (axis.extent - 1) for axis, c in self.terms)


#: A region: one box per dimension; ``None`` where the whole extent is needed.
Region = tuple[Box | None, ...]


def regions(dag: ComputeDAG, anchor: Tensor, epilogue: Tensor | None, attached: Sequence[Tensor]) -> dict[Tensor, Region]:
    """The regions of the ``attached`` stages, in terms of the anchor's axes.

    Every consumer of an attached stage is the anchor, the epilogue, or attached too.
    """
    own = {axis: Box(((axis, 1),), 0, 0) for axis in anchor.axes + anchor.reduce_axes}
    inside: dict[Tensor, Mapping[Axis, Box | None]] = {anchor: own}
    if epilogue is not None:
        inside[epilogue] = {e: own[a] for e, a in zip(epilogue.axes, anchor.axes, strict=True)}
    found: dict[Tensor, Region] = {}
    # Consumers come before producers here, so that each region is complete when it is used.
    for tensor in reversed([t for t in dag.computes if t in attached]):
        boxes: list[Box | None] | None = None
        for consumer in dag.consumers(tensor):
            for access in accesses(consumer):
                if access.tensor is tensor:
                    seen = [_through(form, inside[consumer]) for form in access.dims]
                    boxes = seen if boxes is None else [_hull(a, b) for a, b in zip(boxes, seen, strict=True)]
        assert boxes is not None
        found[tensor] = tuple(boxes)
        whole: dict[Axis, Box | None] = {axis: Box((), 0, axis.extent - 1) for axis in tensor.reduce_axes}
        inside[tensor] = dict(zip(tensor.axes, boxes, strict=True)) | whole
    return found


def _through(form: Affine | None, axes: Mapping[Axis, Box | None]) -> Box | None:
    """The box of an index expression whose axes run over boxes."""
    if form is None:
        return None
    terms: dict[Axis, int] = {}
    constant, extra = form.constant, 0
    for term, coefficient in form.terms:
        box = axes[term] if isinstance(term, Axis) else _range(term)
        if box is None:
            return None
        for axis, inner in box.terms:
            if terms.get(axis, 0) * coefficient * inner < 0:
                # One axis pulls both ways through two boxes.
                return None
            terms[axis] = terms.get(axis, 0) + coefficient * inner
        constant += coefficient * (box.constant + (box.extra if coefficient < 0 else 0))
        extra += abs(coefficient) * box.extra
    return Box(tuple((a, c) for a, c in terms.items() if c), constant, extra)


def _range(term: Expr) -> Box | None:
    """All values of a quotient or remainder: a box that does not move."""
    low, high = bounds(term)
    return Box((), int(low), int(high - low)) if math.isfinite(low) and math.isfinite(high) else None


def _hull(a: Box | None, b: Box | None) -> Box | None:
    """The smallest box around both, or the whole extent where their corners move differently."""
    if a is None or b is None or dict(a.terms) != dict(b.terms):
        return None
    low = min(a.constant, b.constant)
    high = max(a.constant + a.extra, b.constant + b.extra)
    return Box(a.terms, low, high - low)
