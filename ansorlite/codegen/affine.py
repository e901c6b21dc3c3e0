"""Index expressions as linear forms: a constant plus multiples of atoms.

An atom is a loop variable or an index expression that is not linear (``i // 4``, a load, a minimum). int64 arithmetic
wraps, so it is a ring, and the linear form is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.loops.nodes import Load, Store
from ansorlite.once import once_for_each
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr
from ansorlite.te.ops import BinaryOp


@dataclass(frozen=True)
class Affine:
    """``constant + sum(coefficient * atom)``, no atom twice, no coefficient zero."""

    constant: int
    terms: tuple[tuple[Expr, int], ...]

    def scaled(self, factor: int) -> Affine:
        if factor == 0:
            return Affine(0, ())
        return Affine(self.constant * factor, tuple((atom, coefficient * factor) for atom, coefficient in self.terms))

    def plus(self, other: Affine) -> Affine:
        total: dict[Expr, int] = dict(self.terms)
        for atom, coefficient in other.terms:
            total[atom] = total.get(atom, 0) + coefficient
        return Affine(self.constant + other.constant, tuple((a, c) for a, c in total.items() if c))


@once_for_each
def affine(expr: Expr) -> Affine:
    """The linear form of an int64 expression."""
    assert expr.dtype == dtypes.INDEX
    if isinstance(expr, Const):
        return Affine(int(expr.value), ())
    if isinstance(expr, Binary):
        if expr.op is BinaryOp.ADD:
            return affine(expr.a).plus(affine(expr.b))
        if expr.op is BinaryOp.SUB:
            return affine(expr.a).plus(affine(expr.b).scaled(-1))
        if expr.op is BinaryOp.MUL:
            a, b = affine(expr.a), affine(expr.b)
            if not a.terms:
                return b.scaled(a.constant)
            if not b.terms:
                return a.scaled(b.constant)
    return Affine(0, ((expr, 1),))


@once_for_each
def flat(access: Load | Store, strides: tuple[int, ...]) -> Affine:
    """The element offset of what is read or written, in a buffer of these strides."""
    total = Affine(0, ())
    for index, stride in zip(access.indices, strides, strict=True):
        total = total.plus(affine(index).scaled(stride))
    return _rejoined(total)


def _rejoined(form: Affine) -> Affine:
    """``a // n * n + a % n`` is ``a``: an index that two dimensions share, which walks them as one."""
    found = dict(form.terms)
    for atom, coefficient in form.terms:
        if isinstance(atom, Binary) and atom.op is BinaryOp.MOD and isinstance(atom.b, Const):
            # Nodes are hash-consed: an equal quotient is this very node.
            quotient = Binary(BinaryOp.FLOORDIV, atom.a, atom.b, atom.dtype)
            if found.get(quotient) == coefficient * int(atom.b.value):
                rest = tuple(term for term in form.terms if term[0] is not atom and term[0] is not quotient)
                return _rejoined(Affine(form.constant, rest).plus(affine(atom.a).scaled(coefficient)))
    return form
