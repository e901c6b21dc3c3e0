"""Whether a nest's dot products are a product of matrices: what ``loops/matrix_tile.py`` finds in loops, in columns."""

from __future__ import annotations

from typing import NamedTuple

from ansorlite.analysis.access import Access, accesses
from ansorlite.columns.arithmetic import both, either, equal, every, modulo, negated, total, where
from ansorlite.columns.tape import Number
from ansorlite.features.facts import MatrixFacts
from ansorlite.features.nest_view import NestView, distinct
from ansorlite.schedule.nest import Loop, Nest, Packed
from ansorlite.schedule.padding import strides
from ansorlite.te.expr import Binary, Read, Reduce
from ansorlite.te.ops import BinaryOp, ReduceOp


class _Factor(NamedTuple):
    """What a dot product reads, and the copy that it is read from."""

    access: Access
    pack: Packed | None


def matrix_facts(view: NestView, in_registers: Number, matrix_dots: frozenset[BinaryOp]) -> MatrixFacts | None:
    """The loops of the anchor's dot products; ``None`` where it has none, or no program's could be done by matrix units."""
    nest, whole = view.nest, distinct(view.nest.anchor)
    body = whole.body
    if not isinstance(body, Reduce) or body.op is not ReduceOp.SUM or not isinstance(body.body, Binary) or nest.mixed:
        return None
    dot = body.body
    if dot.op not in matrix_dots or not isinstance(dot.a, Read) or not isinstance(dot.b, Read) or not nest.loops:
        return None
    lane = nest.loops[-1]
    if lane.reduce or nest.lane_axis is not lane.axis or lane.fused is not None:
        return None
    known = {access.tensor: access for access in accesses(whole)}
    packs = {pack.tensor: pack for pack in nest.packed}
    if len(known) != 2:
        return None
    x, y = (_Factor(known[read.tensor], packs.get(read.tensor)) for read in (dot.a, dot.b))
    found = [_loops(view, left, right) for left, right in ((x, y), (y, x))]
    first, second = found
    runs = every((nest.lanes > 1, lane.trip > 1, in_registers > 0, _whole(nest, lane)))
    matrix = both(runs, either(first.matrix, second.matrix))
    return MatrixFacts(matrix, first.around, first.outer, first.rows, lane.trip, first.words)


def _loops(view: NestView, left: _Factor, right: _Factor) -> MatrixFacts:
    """The loops from the lanes out to that over the words, and whether they walk the factors as those of a matrix."""
    nest = view.nest
    last = len(nest.loops) - 1
    matrix: Number = both(_is(_step(view, left, last), 0), _is(_step(view, right, last), 1))
    inside: Number = 1
    has_rows: Number = 0
    rows: Number = 1
    outer: Number = 1
    words: Number = 1
    has_words: Number = 0
    around: Number = 1
    of_one_sum: Number = 1
    for position in reversed(range(last)):
        loop = nest.loops[position]
        here, outside = both(inside, loop.trip > 1), both(has_words, loop.trip > 1)
        plain = both(_whole(nest, loop), loop.fused is None and loop.bound is None)
        if loop.reduce:
            lies = both(_is(_step(view, left, position), 1), _moves(_step(view, right, position)))
            alone = both(plain, _nothing_else_inside(nest, position))
            fits = both(alone, lies)
            other_sums = both(nest.apart, loop.band < (nest.inner_reduction or 0))
            of_one_sum = where(outside, every((of_one_sum, alone, negated(other_sums))), of_one_sum)
            around = where(both(outside, of_one_sum), around * loop.trip, around)
            words, has_words = where(here, loop.trip, words), either(has_words, here)
            inside = both(inside, negated(here))
        else:
            of_one_sum = both(of_one_sum, negated(outside))
            still = _is(_step(view, right, position), 0)
            moves = either(has_rows, _moves(_step(view, left, position)))
            fits = every((plain, loop.unrolled, still, moves))
            outer = outer * where(both(here, has_rows), loop.trip, 1)
            rows = where(both(here, negated(has_rows)), loop.trip, rows)
            has_rows = either(has_rows, here)
        matrix = where(here, both(matrix, fits), matrix)
    return MatrixFacts(every((matrix, has_rows, has_words)), around, outer, rows, 1, words)


def _step(view: NestView, factor: _Factor, position: int) -> Number | None:
    """Elements from one iteration of a loop to the next; ``None`` where they are not even."""
    nest, (access, pack) = view.nest, factor
    loop = nest.loops[position]
    if pack is not None:
        if loop.axis not in pack.copy.axes:
            return 0
        step: Number = 1
        for inner in reversed(nest.loops[position:]):
            if inner.axis in pack.copy.axes:
                step = step + pack.pads.get(inner.name, 0)
                step = step * where(pack.at <= inner.band, inner.trip, 1) if inner is not loop else step
        return where(pack.at <= loop.band, step, 0)
    between = strides(view.extents(access.tensor), view.pads.get(access.tensor, ()))
    moved: list[Number] = []
    for form, apart in zip(access.dims, between, strict=True):
        if loop.axis in access.axes and (form is None or (loop.axis in form.variables and loop.axis not in form.coefficients)):
            return None
        moved.append(form.coefficients.get(loop.axis, 0) * apart if form is not None else 0)
    return total(moved) * loop.step


def _is(step: Number | None, wanted: int) -> Number:
    return 0 if step is None else equal(step, wanted)


def _moves(step: Number | None) -> Number:
    return 0 if step is None else step > 0


def _whole(nest: Nest, loop: Loop) -> Number:
    """Whether no loop outside cuts its last run short."""
    around = (each for each in nest.loops[: nest.loops.index(loop)] if each.axis is loop.axis and each.name in nest.cut)
    return every(either(each.trip <= 1, equal(modulo(each.span, each.step), 0)) for each in around)


def _nothing_else_inside(nest: Nest, position: int) -> Number:
    """Whether a loop has no more inside of it than the nest's own statement."""
    loop = nest.loops[position]
    places = (*(each.at for each in nest.packed if not each.prepared), *(each.at for each in nest.attached if not each.prepared))
    asked = (either(each.loop < position, nest.loops[each.loop].trip <= 1) for each in nest.fetched)
    return every((*(at <= loop.band for at in places), *asked))
