"""Copies that threads make element by element, seen as boxes: parts of an array of some dimensions, each copied as a whole::

    thread t in 0..128:                                       sides of the box: 8 elements that lie side by side,
        vectorized v in 0..8:                                 64 rows of 96, 2 pieces of 8
            S[t // 64, t % 64, v] = A[64 * i + t % 64,        it begins at element 0 of a piece, row 64 * i, piece 2 * k
                                      16 * k + t // 64 * 8 + v]

The elements of a box lie one after another where it goes, the innermost side fastest. As with runs (``runs.py``) all elements
are counted, so it is right whatever the indices are made of. Where zeros are copied instead of what is beyond an end of the
array, the box may leave the array there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign, gcd, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.loops.nodes import Buffer, For, Load
from ansorlite.loops.runs import PhaseNest, parted
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Select
from ansorlite.te.index.divisor import divisor
from ansorlite.te.index.form import Affine, flat, form_of, slack
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.ops import BinaryOp

#: Elements of a side, at most.
_MOST: Final = 256
#: Sides of a box, at most.
_SIDES: Final = 5
#: Bytes that a side but the innermost one goes on by multiples of, and that the innermost one has a multiple of.
_UNIT: Final = 16


@dataclass(frozen=True)
class Side:
    """One side of a box, and of the array, wherever the box begins.

    Attributes:
        count: elements of the box along it.
        stride: elements of memory from each to the next.
        extent: how many the array has: from there on zeros are copied, or nothing is.
        filled: whether zeros are. Else the extent may as well be greater.
    """

    count: int
    stride: int
    extent: int
    filled: bool

    def join(self, other: Side) -> Side | None:
        """The side that does for both; ``None``: there is none."""
        if (self.count, self.stride) != (other.count, other.stride):
            return None
        extent = max(self.extent, other.extent)
        if any(side.filled and side.extent != extent for side in (self, other)):
            return None
        return replace(self, extent=extent, filled=self.filled or other.filled)


@dataclass(frozen=True)
class Box:
    """
    Attributes:
        source: what is copied from.
        target: what is copied to.
        to: the element that the first one of the box goes to.
        sides: innermost first.
        begins: which element of the array is the first of the box, by sides.
    """

    source: Buffer
    target: Buffer
    to: Affine
    sides: tuple[Side, ...]
    begins: tuple[Expr, ...]

    @property
    def nbytes(self) -> int:
        """Of the whole box."""
        return prod(side.count for side in self.sides) * dtypes.size(self.target.dtype)

    @property
    def aligned(self) -> int:
        """Bytes that the place of the box is a multiple of, from where its target begins on; 0: it begins there."""
        places = gcd(self.to.constant, *(factor * divisor(term) for term, factor in self.to.terms))
        return places * dtypes.size(self.target.dtype)


def box_of(phase: For, algebra: IndexAlgebra) -> Box | None:
    """The box that a phase of threads copies; ``None``: it does something else, or it cannot be told.

    Args:
        algebra: knows the variables of all loops, those of the phase too.
    """
    nest = PhaseNest.of(phase)
    copied = None if nest is None else _copied(nest.store.value, algebra)
    if nest is None or copied is None:
        return None
    load, ends = copied
    values = nest.values(tuple(nest.extents))
    done, put = nest.done(values), parted(flat(nest.store, nest.store.buffer.strides), values, algebra)
    # What zeros may be copied instead of is told apart from all other indices, which are one sum.
    of = [form_of(load.indices[dim]) for dim in ends]
    strides = load.buffer.strides
    others = [(index, stride) for dim, (index, stride) in enumerate(zip(load.indices, strides, strict=True)) if dim not in ends]
    rest = flat(Load(load.buffer, tuple(index for index, _ in others), load.dtype), tuple(stride for _, stride in others))
    taken = [parted(form, values, algebra) for form in (*of, rest)]
    if done is None or put is None or any(part is None for part in taken):
        return None
    order = np.flatnonzero(done)[np.argsort(put[0][done], kind="stable")]
    places = put[0][order]
    if not len(places) or (np.diff(places) != 1).any():
        return None
    vectors = np.stack([part[0][order] for part in taken if part is not None], 1)
    begins = [part[1].plus(Affine((), int(first))) for part, first in zip(taken, vectors[0], strict=True) if part is not None]
    digits = _digits(vectors - vectors[0])
    if digits is None:
        return None
    found = _sides(digits, begins, ends, load.buffer, algebra)
    if found is None:
        return None
    to = put[1].plus(Affine((), int(places[0])))
    return Box(load.buffer, nest.store.buffer, to, tuple(side for side, _ in found), tuple(begin for _, begin in found))


def _copied(value: Expr, algebra: IndexAlgebra) -> tuple[Load, dict[int, int]] | None:
    """What is copied, and by dimensions from which index on zeros are instead."""
    match value:
        case Load():
            return value, {}
        case Select(condition, Load() as load, Const(zero)) if zero == 0 and copysign(1.0, zero) > 0:
            ends = _ends(condition, load, algebra)
            return None if ends is None else (load, ends)
    return None


def _ends(condition: Expr, load: Load, algebra: IndexAlgebra) -> dict[int, int] | None:
    """Where ``condition`` says no more than that indices are not below 0, and below which ends; ``None``: it says something else.

    Indices may not be beyond the end of the buffer where it holds, so an end is there where the condition names none.
    """
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        a, b = (_ends(side, load, algebra) for side in (condition.a, condition.b))
        if a is None or b is None:
            return None
        return {dim: min(each.get(dim, load.buffer.shape[dim]) for each in (a, b)) for dim in a | b}
    room = slack(condition, algebra.form)
    if room is None:
        return None
    for dim, (index, extent) in enumerate(zip(load.indices, load.buffer.shape, strict=True)):
        form = algebra.form(index)
        if not (above := room.plus(form, -1)).terms and above.constant == 0:
            return {dim: extent}
        if not (below := room.plus(form)).terms and 0 <= below.constant < extent:
            return {dim: below.constant + 1}
    return None


def _digits(vectors: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]] | None:
    """Rows of numbers, the first of which is 0, as sums of multiples: how many of each there are, and of what; fastest first."""
    found: list[tuple[int, NDArray[np.int64]]] = []
    done, total = 1, len(vectors)
    while done < total:
        if total % done:
            return None
        step, firsts = vectors[done], vectors[::done]
        alike = (firsts == np.arange(len(firsts))[:, None] * step).all(1)
        count = len(firsts) if alike.all() else int(alike.argmin())
        if len(firsts) % count:
            return None
        done *= count
        while count > _MOST:
            part = next((part for part in range(_MOST, 1, -1) if count % part == 0), 0)
            if not part:
                return None
            found.append((part, step))
            count, step = count // part, step * part
        found.append((count, step))
    numbers, again = np.arange(total), np.zeros_like(vectors)
    for count, step in found:
        again += (numbers % count)[:, None] * step
        numbers //= count
    return found if np.array_equal(again, vectors) else None


def _sides(
    digits: Sequence[tuple[int, NDArray[np.int64]]],
    begins: Sequence[Affine],
    ends: Mapping[int, int],
    source: Buffer,
    algebra: IndexAlgebra,
) -> tuple[tuple[Side, Expr], ...] | None:
    """Sides, and where the box begins along each; innermost first.

    Args:
        begins: of the indices that have ends, in their order, then of the sum of all others.
    """
    unit = _UNIT // dtypes.size(source.dtype)
    zero = Const(0, dtypes.INDEX)
    # By digit: which of the indices it moves, and how far.
    moved: list[tuple[int, int]] = []
    for _, step in digits:
        parts = np.flatnonzero(step)
        if len(parts) != 1 or step[parts[0]] < 0:
            return None
        moved.append((int(parts[0]), int(step[parts[0]])))
    sides: dict[int, tuple[Side, Expr]] = {}
    added: list[tuple[Side, Expr]] = []
    for part, (dim, end) in enumerate(ends.items()):
        mine = sorted((by, number) for number, (of, by) in enumerate(moved) if of == part)
        stride = source.strides[dim]
        if not mine:
            added.append((Side(1, stride, end, filled=True), begins[part].expr()))
            continue
        # Digits of the index: each goes as far as the next one begins, and the last one takes what the index begins at.
        far = mine[-1][0]
        if [by for by, _ in mine] != [1, *(by * digits[number][0] for by, number in mine[:-1])]:
            return None
        if end % far or gcd(begins[part].constant, *(f * divisor(term) for term, f in begins[part].terms)) % far:
            return None
        for by, number in mine[:-1]:
            sides[number] = Side(digits[number][0], stride * by, digits[number][0], filled=False), zero
        begin = algebra.simplify(begins[part].expr() // far)
        sides[mine[-1][1]] = Side(digits[mine[-1][1]][0], stride * far, end // far, filled=True), begin
    strides = {by: number for number, (of, by) in enumerate(moved) if of == len(ends)}
    for number, (of, by) in enumerate(moved):
        if of == len(ends):
            sides[number] = Side(digits[number][0], by, digits[number][0], filled=False), zero
    shares = _shares(begins[-1], sorted(strides, reverse=True), unit)
    if shares is None:
        return None
    for by, share in shares.items():
        begin, count = algebra.simplify(share.expr()), digits[strides[by]][0] if by in strides else 1
        least, greatest = algebra.range(begin)
        if least < 0 or greatest * by >= source.size:
            return None
        side = Side(count, by, int(greatest) + count, filled=False), begin
        if by in strides:
            sides[strides[by]] = side
        else:
            added.append(side)
    result = (*(sides[number] for number in range(len(digits))), *added)
    if not 0 < len(result) <= _SIDES:
        return None
    inner, outer = result[0][0], result[1:]
    fits = inner.stride == 1 and inner.count % unit == 0 and all(side.stride % unit == 0 for side, _ in outer)
    return result if fits else None


def _shares(begin: Affine, strides: Sequence[int], unit: int) -> dict[int, Affine] | None:
    """Where a box begins, by the strides of its sides, from great ones to small ones; and one more where these do not do."""
    shares: dict[int, list[tuple[Expr, int]]] = {stride: [] for stride in strides}
    constants = dict.fromkeys(strides, 0)
    for term, factor in begin.terms:
        by = next((stride for stride in strides if factor % stride == 0), None)
        if by is None:
            if factor % unit:
                return None
            by = unit
        shares.setdefault(by, []).append((term, factor // by))
    left = begin.constant
    by = next((stride for stride in strides if left % stride == 0), unit)
    if left % by:
        return None
    if left:
        shares.setdefault(by, [])
        constants[by] = left // by
    return {by: Affine(tuple(terms), constants.get(by, 0)) for by, terms in shares.items()}
