"""A plan as a computation in ``te``, written as a user would."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from ansorlite import te
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import const
from tests.fuzz.computations.plan import Apply, Axis, Choose, Convert, Element, Node, Number, Plan, Stage

_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "~": operator.invert,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "neg": operator.neg,
    "not": operator.invert,
    **{name: getattr(te, name) for name in ("power", "minimum", "maximum", "all", "any", "abs", "floor", "ceil", "round")},
    **{name: getattr(te, name) for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf")},
}
_FOLDS: Final[dict[str, Callable[..., te.Expr]]] = {"sum": te.sum, "prod": te.prod, "max": te.max, "min": te.min}


def _expression(node: Node, axes: tuple[te.Expr, ...], tensors: Mapping[str, te.Tensor]) -> te.Expr:
    match node:
        case Number(value, dtype):
            return const(value, dtype)
        case Axis(number):
            return axes[number]
        case Apply(op, operands):
            result: te.Expr = _OPERATIONS[op](*(_expression(operand, axes, tensors) for operand in operands))
            return result
        case Convert(operand, dtype):
            return te.cast(_expression(operand, axes, tensors), dtype)
        case Choose(condition, then, otherwise):
            return te.if_then_else(*(_expression(part, axes, tensors) for part in (condition, then, otherwise)))
        case Element(tensor, indices):
            return tensors[tensor][tuple(_expression(index, axes, tensors) for index in indices)]


def _stage(stage: Stage, tensors: Mapping[str, te.Tensor]) -> te.Tensor:
    reduced = tuple(te.reduce_axis(extent, name=f"r{number}") for number, extent in enumerate(stage.folded))

    def element(*space: te.Expr) -> te.Expr:
        body = _expression(stage.body, (*space, *reduced), tensors)
        return _FOLDS[stage.fold](body, axis=reduced) if stage.fold else body

    return te.compute(stage.shape, element, name=stage.name)


def translated(plan: Plan) -> ComputeDAG:
    """The computation that ``plan`` describes."""
    tensors = {item.name: te.placeholder(item.shape, item.dtype, item.name, constant=item.constant) for item in plan.inputs}
    for stage in plan.stages:
        tensors[stage.name] = _stage(stage, tensors)
    return ComputeDAG.of([tensors[name] for name in (*(item.name for item in plan.inputs), *plan.outputs)])
