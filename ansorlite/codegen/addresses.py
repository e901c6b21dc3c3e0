"""Sums of index terms and element addresses, computed once per place where they are known."""

from __future__ import annotations

from typing import NamedTuple

from ansorlite.codegen import types
from ansorlite.codegen.context import Context, Place


class Term(NamedTuple):
    """``coefficient * text``: a part of an index that is not a literal.

    Attributes:
        depth: the layer that bounds the life of ``text``.
    """

    text: str
    coefficient: int
    depth: int


def total(c: Context, constant: int, terms: list[Term]) -> str:
    """The scalar sum, literal if there are no terms."""
    if not terms:
        return str(constant)
    text, key, depth = _sum(c, terms)
    if constant == 0:
        return text
    found: str | None = c.scope.get((key, constant))
    if found is None:
        found = c.b.op(f"add i64 {text}, {constant}")
        c.scope.keep((key, constant), found, depth)
    return found


def _sum(c: Context, terms: list[Term]) -> tuple[str, tuple[Term, ...], int]:
    """(sum, what it is known by, depth). Outer terms first, so that inner loops share and LLVM hoists the beginnings."""
    ordered = sorted(terms, key=lambda term: term.depth)
    result, depth = "", 0
    key: tuple[Term, ...] = ()
    for term in ordered:
        key = (*key, term)
        depth = max(depth, term.depth)
        found: str | None = c.scope.get(key)
        if found is None:
            found = term.text if term.coefficient == 1 else c.b.op(f"mul i64 {term.text}, {term.coefficient}")
            if result:
                found = c.b.op(f"add i64 {result}, {found}")
            c.scope.keep(key, found, depth)
        result = found
    return result, key, depth


def address(c: Context, place: Place, dtype: str, constant: int, terms: list[Term]) -> str:
    """The address of the element at ``constant + terms``."""
    element, pointer = types.MEMORY[dtype], place.pointer
    if terms:
        offset, key, depth = _sum(c, terms)
        found: str | None = c.scope.get((place.pointer, key))
        if found is None:
            found = c.b.op(f"getelementptr {element}, ptr {place.pointer}, i64 {offset}")
            c.scope.keep((place.pointer, key), found, max(depth, place.depth))
        pointer = found
    return c.b.op(f"getelementptr {element}, ptr {pointer}, i64 {constant}") if constant else pointer
