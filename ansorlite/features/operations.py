"""Counting what an expression does to data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from ansorlite.features.facts import ALWAYS, Operations
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Cast, Const, Expr, Reduce, Select, Unary
from ansorlite.te.ops import BINARY, COMBINE, UNARY, BinaryOp, Cost
from ansorlite.te.powers import by_products, has_products

#: How many exponential functions the time of a power is: a logarithm and an exponential, both in twice the precision.
_POWER: Final = 5


def operations(value: Expr, leaves: Mapping[Expr, int]) -> dict[frozenset[int], Operations]:
    """The operations in ``value`` through which data flow, by the reads that their operands are made of.

    Args:
        leaves: the number of each read; that of an accumulator is ``ALWAYS``.

    Index arithmetic, conditions and selects are not counted: simplification may remove them.
    """
    counts: defaultdict[frozenset[int], Counter[Cost]] = defaultdict(Counter)
    if isinstance(value, Reduce):
        counts[frozenset((ALWAYS,))][BINARY[COMBINE[value.op]].cost] += 1
        value = value.body
    found: dict[Expr, frozenset[int]] = {}

    def visit(node: Expr) -> frozenset[int]:
        if node in found:
            return found[node]
        if node in leaves:
            found[node] = frozenset((leaves[node],))
            return found[node]
        operands = node.children()[1:] if isinstance(node, Select) else node.children()
        found[node] = sources = frozenset[int]().union(*map(visit, operands))
        if sources and isinstance(node, Binary):
            if node.op is BinaryOp.POW and dtypes.is_float(node.dtype):
                _count_power(node.b, counts[sources])
            else:
                counts[sources][BINARY[node.op].cost] += 1
        elif sources and isinstance(node, Unary):
            counts[sources][UNARY[node.op].cost] += 1
        elif sources and isinstance(node, Cast) and dtypes.is_float(node.dtype) != dtypes.is_float(node.a.dtype):
            counts[sources][Cost.CONVERT] += 1
        return sources

    visit(value)
    kinds = (Cost.CHEAP, Cost.MUL, Cost.DIV, Cost.MATH, Cost.CONVERT, Cost.DOT)
    return {sources: Operations(*(own[kind] for kind in kinds)) for sources, own in counts.items()}


def _count_power(exponent: Expr, counts: Counter[Cost]) -> None:
    """What a power of floats is made of."""
    if not (isinstance(exponent, Const) and has_products(float(exponent.value))):
        counts[Cost.MATH] += _POWER
        return

    def counted(cost: Cost) -> Callable[..., None]:
        def count(*operands: None) -> None:
            del operands
            counts[cost] += 1

        return count

    product, root = counted(Cost.MUL), counted(Cost.DIV)
    by_products(float(exponent.value), None, one=None, multiply=product, root=root, invert=root)
