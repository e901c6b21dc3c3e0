"""Counting what an expression does to data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.features.facts import Operations
from ansorlite.te import dtypes
from ansorlite.te.expr import Binary, Const, Expr, Reduce, Select, Unary
from ansorlite.te.ops import BINARY, COMBINE, UNARY, BinaryOp, Cost
from ansorlite.te.powers import by_products, has_products

#: How many exponential functions the time of a power is: a logarithm and an exponential, both in twice the precision.
_POWER: Final = 5


def operations(value: Expr, is_leaf: Callable[[Expr], bool]) -> Operations:
    """The operations in ``value`` through which data flow; ``is_leaf`` tells the reads.

    Index arithmetic, conditions and selects are not counted: simplification may remove them.
    """
    counts = dict.fromkeys(Cost, 0)
    if isinstance(value, Reduce):
        counts[BINARY[COMBINE[value.op]].cost] += 1
        value = value.body
    carries: dict[Expr, bool] = {}

    def visit(node: Expr) -> bool:
        if node in carries:
            return carries[node]
        if is_leaf(node):
            carries[node] = True
            return True
        operands = node.children()[1:] if isinstance(node, Select) else node.children()
        flows = False
        for child in operands:
            flows |= visit(child)
        carries[node] = flows
        if flows and isinstance(node, Binary):
            if node.op is BinaryOp.POW and dtypes.is_float(node.dtype):
                _count_power(node.b, counts)
            else:
                counts[BINARY[node.op].cost] += 1
        elif flows and isinstance(node, Unary):
            counts[UNARY[node.op].cost] += 1
        return flows

    visit(value)
    return Operations(counts[Cost.CHEAP], counts[Cost.MUL], counts[Cost.DIV], counts[Cost.MATH])


def _count_power(exponent: Expr, counts: dict[Cost, int]) -> None:
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
