"""The loops that make a packed copy.

They are those of the anchor that the copy depends on, as its dimensions are, but the copy is to read its source as that lies in
memory:

* Where the copy's innermost loop walks along the source, whole cache lines at a time, the loops further out over the same axis
  come after all others, fused::

      for j0 in 0..16:                                       for k in 0..1024:
          for k in 0..1024:                                      for j0 in 0..16:
              vectorized(16) j in 0..64:                             vectorized(16) j in 0..64:
                  packed[j0, k, j] = B[k, j0 * 64 + j]                   packed[j0, k, j] = B[k, j0 * 64 + j]

* Where it walks across the rows of the source, the loops that walk a run of it, one element after another, and the copy in even
  steps, come last, fused and vectorised. Their vectors are transposed in registers (``codegen/transposed.py``)::

      for k in 0..64:                                        unrolled i in 0..8:
          unrolled i in 0..8:                                    vectorized(16) k in 0..64:
              packed[k, i] = A[i, k]                                 packed[k, i] = A[i, k]

The numbers are those of one row or of a population, as in the fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.analysis.access import accesses
from ansorlite.columns.arithmetic import both, either, equal, every, low_bit, modulo, negated, product, total, where
from ansorlite.columns.tape import Number
from ansorlite.schedule.fusing import runs
from ansorlite.schedule.nest import CopyLoop, Nest
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Read
from ansorlite.te.tensor import Tensor

#: A parallel loop of so many iterations is enough for all threads.
_ENOUGH: Final = 16
#: Bytes of an element that is transposed in registers, at least: of smaller ones too many go into a vector.
_LEAST_BYTES: Final = 4


@dataclass(frozen=True)
class _Move:
    """What comes in another order than the dimensions of a copy.

    Attributes:
        flags: by position, outermost first, the loops that may be moved and fused, and whether they are.
        before: the position of the loop that they come before.
        along: flag: whether the source is walked row by row.
        transposed: flag: whether they are vectorised, and stored across.
    """

    flags: Mapping[int, Number]
    before: int
    along: Number = 0
    transposed: Number = 0


def copy_loops(
    nest: Nest, copy: Tensor, at: Number, prepared: bool, pads: Mapping[str, Number]
) -> tuple[tuple[CopyLoop, ...], Number]:
    """The loops of a copy made at the place ``at``, and whether it is transposed in registers.

    Args:
        prepared: whether it is made once, of constants: then no loop is unrolled, which would take longer than it gains.
        pads: by loop that is a dimension of the copy: elements behind what one iteration of it has.
    """
    axes = frozenset(copy.axes)
    used = [position for position, loop in enumerate(nest.loops) if loop.axis in axes]
    trips = [where(loop.band >= at, loop.trip, 1) if loop.axis in axes else 1 for loop in nest.loops]
    move = _move(nest, copy, used, trips, pads)
    result: list[CopyLoop] = []
    for position, trip in enumerate(trips):
        stays = negated(move.flags.get(position, 0))
        vector = bool(used) and position == used[-1] == len(trips) - 1
        lanes = where(move.transposed, 1, nest.lanes) if vector else 1
        # Written out, a loop outside of others would be as many copies of them.
        inside = negated(move.along) if position < move.before else 1
        unrolled = 0 if prepared else both(nest.loops[position].unrolled, inside)
        result.append(CopyLoop(((position, stays),), where(stays, trip, 1), unrolled, lanes, 0))
    if move.flags:
        trip = product(where(flag, trips[position], 1) for position, flag in move.flags.items())
        fused = CopyLoop(tuple(move.flags.items()), trip, 0, where(move.transposed, nest.lanes, 1), 0, moved=True)
        result.insert(move.before, fused)
    return tuple(_shared(nest, at, used, result)), move.transposed


def _move(nest: Nest, copy: Tensor, used: Sequence[int], trips: Sequence[Number], pads: Mapping[str, Number]) -> _Move:
    stays = _Move({}, len(nest.loops))
    strides = _strides(copy)
    if not used or strides is None or nest.loops[used[-1]].band < nest.last_space:
        return stays
    if any(nest.loops[p].bound is not None or nest.loops[p].fused is not None for p in used):
        # Neighbouring threads take what they take, and fused loops stay side by side.
        return stays
    last, item = used[-1], dtypes.size(copy.dtype)
    inner = nest.loops[last]
    if strides[inner.axis] == 1:
        panels = [p for p in used if nest.loops[p].axis is inner.axis and nest.loops[p].band < inner.band]
        whole = (low_bit(trips[last] * item) >= CACHE_LINE, *(equal(modulo(pad * item, CACHE_LINE), 0) for pad in pads.values()))
        lines = every((*whole, *(_exact(nest, p) for p in (*panels, last))))
        return _Move(dict.fromkeys(panels, lines), nest.band_start(inner.band), along=lines)
    if item < _LEAST_BYTES:
        return stays
    # From the loop that walks the source element by element on, each that goes on where the ones before end.
    taken: dict[int, Number] = {}
    length: Number = 1
    even: Number = 0
    written: dict[int, Number] = {}  # elements of the copy from one iteration to the next
    inside: Number = 1
    for p in reversed(used):
        written[p] = inside + pads.get(nest.loops[p].name, 0)
        inside = written[p] * trips[p]
    candidates = [p for p in used if strides[nest.loops[p].axis] < strides[inner.axis]]
    for p in sorted(candidates, key=lambda p: (strides[nest.loops[p].axis], -p)):
        loop = nest.loops[p]
        first = equal(length, 1)
        follows = both(equal(strides[loop.axis] * loop.step, length), either(first, equal(written[p], even * length)))
        taken[p] = every((trips[p] > 1, follows, _exact(nest, p)))
        even = where(both(first, taken[p]), written[p], even)
        length = where(taken[p], length * trips[p], length)
    transposed = every((trips[last] > 1, nest.lanes > 1, length >= nest.lanes))
    return _Move({p: both(transposed, taken[p]) for p in sorted(taken)}, len(nest.loops), transposed=transposed)


def _strides(copy: Tensor) -> dict[Axis, int] | None:
    """Elements of the source from one to the next along each axis of what is a plain copy; ``None`` of anything else, or where it
    is read backwards."""
    if not isinstance(copy.body, Read):
        return None
    (access,) = accesses(copy)
    found = {axis: stride for axis in copy.axes if (stride := access.stride(axis)) is not None and stride > 0}
    return found if len(found) == len(copy.axes) else None


def _exact(nest: Nest, position: int) -> Number:
    """Whether a loop always runs its full trip."""
    loop = nest.loops[position]
    if loop.name not in nest.cut:
        return 1
    around = nest.loops if loop.axis in nest.mixed else nest.loops[:position]
    return every(equal(product((other.trip, other.step)), other.span) for other in around if other.axis is loop.axis)


def _shared(nest: Nest, at: Number, used: Sequence[int], loops: Sequence[CopyLoop]) -> Iterator[CopyLoop]:
    """``loops``, of which at the root of a parallel nest the outermost ones are fused and parallel."""
    going: Number = every((equal(at, 0), nest.parallel > 0, total(loop.trip > 1 for loop in loops) > 1))
    before: Number = 1
    for run in runs(loops, (None if loop.moved else nest.loops[loop.parts[0][0]].fused for loop in loops)):
        going = both(going, before < _ENOUGH)
        for loop in run:
            positions = [position for position, _ in loop.parts]
            # The innermost loop stays: neighbours are copied by one thread.
            outside = bool(used) and (loop.moved or positions[0] < used[-1])
            exact = every(_exact(nest, position) for position in positions if position in used)
            going = every((going, exact, outside, equal(loop.lanes, 1)))
            before = before * loop.trip
        for loop in run:
            yield replace(loop, unrolled=both(loop.unrolled, negated(going)), parallel=going)
