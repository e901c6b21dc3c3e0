"""Sums of index terms and element addresses, each computed once, as far outside of the loops as it is known."""

from __future__ import annotations

import math
from typing import NamedTuple

from ansorlite.codegen import types
from ansorlite.codegen.context import Context, Counter, Storage, Stream
from ansorlite.te import dtypes


class Term(NamedTuple):
    """``coefficient * text``: a part of an index that is not a literal.

    Attributes:
        depth: the layer that bounds the life of ``text``.
        divisor: a number that ``text`` is known to be a multiple of.
    """

    text: str
    coefficient: int
    depth: int
    divisor: int = 1


def _hoisted(c: Context, text: str, depth: int) -> str:
    """An instruction whose operands depend on nothing inside of layer ``depth``; its name."""
    known: str | None = c.scope.get(text)
    if known is None:
        known = c.b.op(text, c.scope.slot(depth))
        c.scope.keep(text, known, depth)
    return known


def _product(c: Context, term: Term) -> str:
    return term.text if term.coefficient == 1 else _hoisted(c, f"mul i64 {term.text}, {term.coefficient}", term.depth)


def _walking(c: Context, pointer: str, dtype: str, term: Term, counter: Counter, depends: frozenset[int]) -> str:
    """``pointer`` plus ``term``, a multiple of the loop's counter, as a pointer that steps along with it.

    Args:
        depends: layers of what the address is made of.
    """
    key = pointer, dtype, term
    known: str | None = c.scope.get(key)
    if known is not None:
        return known
    name, following = c.b.name(), c.b.name()
    c.scope.keep(key, name, term.depth)
    step = f"getelementptr {types.MEMORY[dtype]}, ptr {name}, i64 {counter.step * term.coefficient}"
    counter.phis.append(f"  {name} = phi ptr [ {pointer}, %{counter.before} ], [ {following}, %{counter.latch} ]")
    counter.increments.append(f"  {following} = {step}")
    c.streams[name] = Stream(counter, counter.step * term.coefficient * dtypes.size(dtype), depends)
    return name


def _by_depth(term: Term) -> int:
    return term.depth


def total(c: Context, constant: int, terms: list[Term]) -> str:
    """The scalar sum, literal if there are no terms. Outer terms are added first, so that inner loops share their sum."""
    result, depth = "", 0
    for term in sorted(terms, key=_by_depth):
        depth = max(depth, term.depth)
        product = _product(c, term)
        result = _hoisted(c, f"add i64 {result}, {product}", depth) if result else product
    if not result:
        return str(constant)
    return _hoisted(c, f"add i64 {result}, {constant}", depth) if constant else result


def base(c: Context, place: Storage, dtype: str, terms: list[Term]) -> tuple[str, int]:
    """(the address of the element at ``terms``, the layer that bounds its life): a step of a pointer for each term."""
    if not terms:
        return place.pointer, place.depth
    key = place.pointer, dtype, tuple(terms)
    found: tuple[str, int] | None = c.scope.get(key)
    if found is None:
        found = _stepped(c, place, dtype, terms)
        c.scope.keep(key, found, found[1])
    return found


def _stepped(c: Context, place: Storage, dtype: str, terms: list[Term]) -> tuple[str, int]:
    pointer, depth = place.pointer, place.depth
    for term in sorted(terms, key=_by_depth):
        outer, depth = depth, max(depth, term.depth)
        counter = c.counters.get(term.text)
        if counter is not None and outer < counter.barrier:
            if counter.begin:
                skipped = counter.begin * term.coefficient
                pointer = _hoisted(c, f"getelementptr {types.MEMORY[dtype]}, ptr {pointer}, i64 {skipped}", outer)
            pointer = _walking(c, pointer, dtype, term, counter, frozenset(map(_by_depth, terms)))
            continue
        pointer = _hoisted(c, f"getelementptr {types.MEMORY[dtype]}, ptr {pointer}, i64 {_product(c, term)}", depth)
    return pointer, depth


def alignment(c: Context, place: Storage, dtype: str, constant: int, terms: list[Term]) -> int:
    """What the address of the element ``constant`` beyond those terms is a multiple of.

    Literals tell, steps of counters, and what is known of indices: where a tile is shifted back from an edge, say.
    """
    least = place.alignment(dtype)
    if not place.aligned:
        return least
    step = constant
    for term in terms:
        counter = c.counters.get(term.text)
        divisor = term.divisor if counter is None else math.gcd(counter.begin, counter.step)
        step = math.gcd(step, term.coefficient * divisor)
    return max(least, math.gcd(place.aligned, step * dtypes.size(dtype)))


def element(c: Context, pointer: str, dtype: str, constant: int) -> str:
    """The address ``constant`` elements beyond ``pointer``."""
    return c.b.op(f"getelementptr {types.MEMORY[dtype]}, ptr {pointer}, i64 {constant}") if constant else pointer
