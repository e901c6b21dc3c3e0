"""Counting what an expression does to data."""

from __future__ import annotations

from collections.abc import Callable

from ansorlite.features.facts import Operations
from ansorlite.te.expr import Binary, Expr, Reduce, Select, Unary
from ansorlite.te.ops import BINARY, COMBINE, UNARY, Cost


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
            counts[BINARY[node.op].cost] += 1
        elif flows and isinstance(node, Unary):
            counts[UNARY[node.op].cost] += 1
        return flows

    visit(value)
    return Operations(counts[Cost.CHEAP], counts[Cost.MUL], counts[Cost.DIV], counts[Cost.MATH])
