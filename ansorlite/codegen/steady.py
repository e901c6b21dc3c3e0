"""The steady state of a loop over data with a border: the iterations in which all comparisons with its variable hold.

Of a row that is copied with its border, elements are asked whether they are the row's own::

    for j in 0..114:
        pad[j] = x[j - 1] if 0 <= j - 1 < 112 else 0

From 1 to 112 they are. A loop over these iterations alone asks nothing, as comparisons are no code where the ranges of the
variables decide them. (Halide calls the three parts prologue, steady state and epilogue, and to find them loop partitioning.)
"""

from __future__ import annotations

import math

from ansorlite.codegen.context import Context
from ansorlite.codegen.unswitch import selected
from ansorlite.loops.nodes import For
from ansorlite.once import once_for_each
from ansorlite.te.expr import Expr
from ansorlite.te.index.form import slack
from ansorlite.te.index.ranges import bounds
from ansorlite.te.traversal import free_vars, walk


def partitioned(c: Context, loop: For, extent: int, step: int) -> tuple[tuple[int, int], ...]:
    """The parts of ``loop``, first iteration and end of each: prologue, steady state and epilogue, those that there are.

    Args:
        extent: iterations that are to be cut: a multiple of ``step``, as all parts are.
    """
    begin, end = 0, extent
    for coefficient, rest in _asked(loop) if c.target.gpu is None else ():
        least = bounds(rest, c.ranges)[0]
        if not math.isfinite(least):
            return ((0, extent),)
        if coefficient > 0:
            begin = max(begin, -(int(least) // coefficient))
        else:
            end = min(end, int(least) // -coefficient + 1)
    begin, end = -(-begin // step) * step, end // step * step
    if begin >= end:
        return ((0, extent),)
    return tuple(part for part in ((0, begin), (begin, end), (end, extent)) if part[0] < part[1])


@once_for_each
def _asked(loop: For) -> tuple[tuple[int, Expr], ...]:
    """Of each comparison that is to hold: the coefficient of the loop's variable in what is then not negative, and the rest.

    None where inner loops ask, too: all would be written several times, in parts of parts.
    """
    found = selected(loop)
    if found is None:
        return ()
    (_, value), inner, result = found, loop.body, []
    while isinstance(inner, For):
        if inner.var in free_vars(value.cond):
            return ()
        inner = inner.body
    for comparison in walk(value.cond):
        form = slack(comparison)
        coefficient = 0 if form is None else form.coefficients.get(loop.var, 0)
        if form is not None and coefficient:
            rest = form.without(loop.var)
            if loop.var not in rest.variables:
                result.append((coefficient, rest.expr()))
    return tuple(result)
