"""How long straight-line code is at least, told from the numbers of a schedule: nothing is lowered.

The emitter counts the values that it writes, and refuses more than a limit (``limits.py``). What is sure to be refused need not
be proposed.
"""

from __future__ import annotations

from typing import Final

from ansorlite.columns.arithmetic import largest, maximum
from ansorlite.columns.tape import Number
from ansorlite.once import once_for_each
from ansorlite.schedule.nest import Nest, Program
from ansorlite.te.expr import Axis, Binary, Expr, Read, Reduce, Select, Unary
from ansorlite.te.index.affine import affine
from ansorlite.te.ops import BINARY, UNARY, Cost
from ansorlite.te.tensor import Tensor

#: An exponential and its like take so many values, at least.
LEAST_OF_MATH: Final = 8


def least_values(program: Program) -> Number:
    """How many values the longest function of a program computes, at least.

    Of each nest these are the operations of the anchor's statement that every one of its unrolled iterations has for itself.
    """
    longest: Number = 1
    for nest in (nest for each in program.nests for nest in each.all):
        longest = maximum(longest, nest.written_out * _of_one(nest))
    return longest


def _of_one(nest: Nest) -> int:
    unrolled = {loop.axis for loop in nest.loops if largest(loop.unrolled) > 0}
    adds_up = isinstance(nest.anchor.body, Reduce)
    return adds_up + sum(values for values, axes in _operations(nest.anchor) if axes >= unrolled)


@once_for_each
def _operations(tensor: Tensor) -> tuple[tuple[int, frozenset[Axis]], ...]:
    """Operations on data: how many values each is at least, and the axes along which all its values are apart.

    What only a taken arm computes is left out.
    """
    found: dict[Expr, frozenset[Axis]] = {}

    def visit(node: Expr) -> frozenset[Axis]:
        if node not in found:
            if isinstance(node, Read):
                forms = [affine(index) for index in node.indices]
                found[node] = frozenset(form.plain for form in forms if form is not None and isinstance(form.plain, Axis))
            elif isinstance(node, Select):
                found[node] = frozenset()
            else:
                found[node] = frozenset[Axis]().union(*map(visit, node.children()))
        return found[node]

    assert tensor.body is not None
    visit(tensor.body.body if isinstance(tensor.body, Reduce) else tensor.body)
    priced = (
        (BINARY[n.op] if isinstance(n, Binary) else UNARY[n.op], axes)
        for n, axes in found.items()
        if isinstance(n, Binary | Unary)
    )
    return tuple((LEAST_OF_MATH if info.cost is Cost.MATH else 1, axes) for info, axes in priced if axes)
