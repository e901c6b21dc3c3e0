"""Copies that threads make element by element, seen as what they are: rows of neighbours, each copied as a whole::

    thread t in 0..64:                                        for r in 0..8:
        unrolled n in 0..2:                                       S[r, 0:64] = A[k + r, 0:64]
            vectorized v in 0..4:
                S[(n * 64 + t) // 16, (n * 64 + t) % 16 * 4 + v] = A[k + (n * 64 + t) // 16, (n * 64 + t) % 16 * 4 + v]

Which elements follow each other, in memory and where they go, is found by counting them all: a phase has few thousands. So it is
right whatever the indices are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.loops.nodes import Block, For, If, Load, LoopKind, Stmt, Store, index
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Unary, Var
from ansorlite.te.index.divisor import divisor
from ansorlite.te.index.form import Affine, flat
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.numeric import apply
from ansorlite.te.traversal import free_vars, substitute, walk

#: Elements that a phase copies at most, to be looked at.
_MOST: Final = 1 << 20


@dataclass(frozen=True)
class Runs:
    """
    Attributes:
        store: the copy of the first element of run number ``number``, a variable of its own.
        count: how many runs there are.
        elements: of each.
        aligned: bytes, a power of two of 16 at most, that the first elements of all runs lie at multiples of, in memory and where
            they go, if both buffers begin at such.
    """

    store: Store
    number: Var
    count: int
    elements: int
    aligned: int

    @property
    def nbytes(self) -> int:
        """Of one run."""
        return self.elements * dtypes.size(self.store.buffer.dtype)


def runs_of(phase: For, algebra: IndexAlgebra) -> Runs | None:
    """The runs that a phase of threads copies, as long as they can be; ``None``: it does something else, or it cannot be told.

    Args:
        algebra: knows the variables of the loops around; those of the phase are bound here.
    """
    nest = PhaseNest.of(phase)
    if nest is None or not isinstance(nest.store.value, Load):
        return None
    found = [runs for order in nest.orders() if (runs := _in_order(nest, order, algebra)) is not None]
    return max(found, key=lambda runs: runs.elements, default=None)


@dataclass(frozen=True)
class PhaseNest:
    """One store, within loops over threads and inside of each.

    Attributes:
        extents: of these loops, outermost first, that over threads included.
        conditions: under which it is done.
    """

    thread: Var
    extents: Mapping[Var, int]
    lanes: tuple[Var, ...]
    conditions: tuple[Expr, ...]
    store: Store

    @staticmethod
    def of(phase: For) -> PhaseNest | None:
        """``None``: the phase has no such form, or too many iterations to be counted."""
        extents: dict[Var, int] = {}
        lanes: list[Var] = []
        conditions: list[Expr] = []
        stmt: Stmt = phase
        while not isinstance(stmt, Store):
            match stmt:
                case For(extent=Const(count)) if int(count) > 0:
                    extents[stmt.var] = int(count)
                    if stmt.kind is LoopKind.VECTORIZED:
                        lanes.append(stmt.var)
                    stmt = stmt.body
                case If(cond, body):
                    conditions.append(cond)
                    stmt = body
                case Block((only,)):
                    stmt = only
                case _:
                    return None
        return PhaseNest(phase.var, extents, tuple(lanes), tuple(conditions), stmt) if prod(extents.values()) <= _MOST else None

    def orders(self) -> Iterator[tuple[Var, ...]]:
        """Orders of the loops in which neighbours may follow each other: threads outside of what each does, and inside."""
        others = tuple(var for var in self.extents if var is not self.thread and var not in self.lanes)
        yield (*others, self.thread, *self.lanes)
        if others:
            yield (self.thread, *others, *self.lanes)

    def values(self, order: tuple[Var, ...]) -> dict[Var, NDArray[np.int64]]:
        """Of the variables in all iterations, the last of ``order`` fastest."""
        extents = [self.extents[var] for var in order]
        numbers = np.arange(prod(extents), dtype=np.int64)
        return dict(zip(order, np.unravel_index(numbers, extents), strict=True))

    def done(self, values: Mapping[Var, NDArray[np.int64]]) -> NDArray[np.bool_] | None:
        """In which iterations the conditions hold; ``None``: that depends on other variables."""
        result = np.ones(prod(self.extents.values()), np.bool_)
        for condition in self.conditions:
            holds = _values(condition, values)
            if holds is None:
                return None
            result &= holds
        return result


def _in_order(nest: PhaseNest, order: tuple[Var, ...], algebra: IndexAlgebra) -> Runs | None:
    extents = [nest.extents[var] for var in order]
    values = nest.values(order)
    copies = nest.done(values)
    if copies is None:
        return None
    count = int(copies.sum())
    if not count or not copies[:count].all():
        return None
    load = nest.store.value
    assert isinstance(load, Load)
    to, source = _places(nest.store, values, algebra), _places(load, values, algebra)
    if to is None or source is None:
        return None
    (put, put_by), (taken, taken_by) = to, source
    put, taken = put[:count], taken[:count]
    ends = np.flatnonzero((np.diff(put) != 1) | (np.diff(taken) != 1)) + 1
    elements = gcd(count, *ends.tolist())
    item = dtypes.size(nest.store.buffer.dtype)
    firsts = np.gcd.reduce(np.concatenate([put[::elements], taken[::elements]]))
    number = Var("run")
    algebra.bind(number, index(count // elements))
    # Run number r begins at the element of that number times so many.
    at: dict[Var, Expr] = {}
    step = prod(extents)
    for var, extent in zip(order, extents, strict=True):
        step //= extent
        at[var] = number * elements // step % extent
    store = _at(nest.store, at, algebra)
    return Runs(store, number, count // elements, elements, gcd(int(firsts) * item, put_by * item, taken_by * item, 16))


def shifted(runs: Runs, by: int, algebra: IndexAlgebra) -> Store:
    """The copy of the first element of the run ``by`` numbers further on."""
    return _at(runs.store, {runs.number: runs.number + by}, algebra) if by else runs.store


def _at(store: Store, values: Mapping[Var, Expr], algebra: IndexAlgebra) -> Store:
    """``store`` with variables replaced."""

    def put_in(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(algebra.simplify(substitute(each, dict(values))) for each in indices)

    load = store.value
    assert isinstance(load, Load)
    return replace(store, indices=put_in(store.indices), value=Load(load.buffer, put_in(load.indices), load.dtype))


def _places(
    access: Load | Store, values: Mapping[Var, NDArray[np.int64]], algebra: IndexAlgebra
) -> tuple[NDArray[np.int64], int] | None:
    """Where elements lie from what does not depend on threads on, and what that is a multiple of; in elements.

    ``None``: the two cannot be told apart.
    """
    found = parted(flat(access, access.buffer.strides), values, algebra)
    if found is None:
        return None
    places, rest = found
    return places + rest.constant, gcd(*(factor * divisor(term) for term, factor in rest.terms))


def parted(
    form: Affine, values: Mapping[Var, NDArray[np.int64]], algebra: IndexAlgebra
) -> tuple[NDArray[np.int64], Affine] | None:
    """A sum as what of it depends on ``values``, for all of these, and the rest; ``None``: the two cannot be told apart."""
    total = np.zeros(len(next(iter(values.values()))), np.int64)
    others: list[tuple[Expr, int]] = []
    mixed: list[tuple[Expr, int]] = []
    for term, factor in form.terms:
        free = free_vars(term)
        if free.isdisjoint(values):
            others.append((term, factor))
        elif not free <= values.keys():
            mixed.append((term, factor))
        elif (found := _values(term, values)) is not None:
            total += factor * found
        else:
            return None
    rest = Affine(tuple(others), form.constant)
    if not mixed:
        return total, rest
    line = _line(mixed, values, algebra)
    return None if line is None else (total + line[0], rest + line[1])


def _line(
    terms: Sequence[tuple[Expr, int]], values: Mapping[Var, NDArray[np.int64]], algebra: IndexAlgebra
) -> tuple[NDArray[np.int64], Affine] | None:
    """Terms of one more variable, the digits of a sum with it, that grow with it by the same for all ``values``: parted."""
    outside = frozenset[Var]().union(*(free_vars(term) for term, _ in terms)) - values.keys()
    if len(outside) != 1:
        return None
    (var,) = outside
    least, most = algebra.range(var)
    if least != 0 or (most + 1) * len(next(iter(values.values()))) > _MOST:
        return None
    numbers = np.arange(int(most) + 1)[:, None]
    every: dict[Var, NDArray[np.int64]] = {each: of[None, :] for each, of in values.items()} | {var: numbers}
    total = np.zeros((1, 1), np.int64)
    for term, factor in terms:
        found = _values(term, every)
        if found is None:
            return None
        total = total + factor * found
    step = int(total[1, 0] - total[0, 0]) if len(total) > 1 else 0
    if not np.array_equal(total, total[0] + numbers * step):
        return None
    return total[0], Affine(((var, step),) if step else (), 0)


def _values(expr: Expr, values: Mapping[Var, NDArray[Any]]) -> Any | None:
    """An expression for all values of its variables; ``None``: it has others, or loads."""
    if not free_vars(expr) <= values.keys():
        return None
    done: dict[Expr, Any] = {}
    for node in walk(expr):
        match node:
            case Var():
                done[node] = values[node]
            case Const(value):
                done[node] = value
            case Binary(op, a, b):
                done[node] = apply(op, (done[a], done[b]), a.dtype, node.dtype)
            case Unary(op, a):
                done[node] = apply(op, (done[a],), a.dtype, node.dtype)
            case _:
                return None
    return done[expr]
