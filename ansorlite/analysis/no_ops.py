"""Steps of a reduction that change nothing: a zero is added, or what cannot be the maximum is compared.

They are found from the condition of a select whose other arm is such a value, in the reduction or in the stage that it reads:
the taps of a convolution, or of a pooling, that meet padding.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansorlite.once import once_for_each
from ansorlite.te.expr import Binary, Cast, Const, Expr, Read, Reduce, Select, Var
from ansorlite.te.index.affine import affine
from ansorlite.te.index.form import Affine, slack
from ansorlite.te.ops import BinaryOp, ReduceOp
from ansorlite.te.reductions import identity
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import substitute


def factors(value: Expr) -> Iterator[Expr]:
    """What ``value`` is a product of: where one of them is zero, all of it is."""
    match value:
        case Binary(BinaryOp.MUL, a, b):
            yield from factors(a)
            yield from factors(b)
        case Cast(a):
            yield from factors(a)
        case Select(_, then, Const(value=0)):
            yield value
            yield from factors(then)
        case _:
            yield value


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that must all hold for ``condition`` to."""
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


@once_for_each
def needed(tensor: Tensor) -> tuple[Affine, ...]:
    """Forms over the axes of a reduction, none of which is negative in a step that may change its result.

    Those of space axes alone are left out: no step of such an element is needed, and it has its first value.
    """
    if not isinstance(tensor.body, Reduce):
        return ()
    found = []
    for condition in _conditions(tensor.body):
        form = slack(condition, affine)
        if form is not None and form.over_variables and not form.variables.isdisjoint(tensor.body.axes):
            found.append(form)
    return tuple(dict.fromkeys(found))


def _conditions(total: Reduce) -> Iterator[Expr]:
    """What must hold in a step that may change the result."""
    nothing = identity(total.op, total.dtype)
    for factor in factors(total.body) if total.op is ReduceOp.SUM else (total.body,):
        yield from _unless(factor, nothing)
        if isinstance(factor, Read) and factor.tensor.body is not None:
            here: dict[Var, Expr] = dict(zip(factor.tensor.axes, factor.indices, strict=True))
            parts = factors(factor.tensor.body) if total.op is ReduceOp.SUM else (factor.tensor.body,)
            for condition in (each for part in parts for each in _unless(part, nothing)):
                yield substitute(condition, here)


def _unless(value: Expr, nothing: Const) -> Iterator[Expr]:
    """What must hold for ``value`` to be other than ``nothing``."""
    if isinstance(value, Select) and isinstance(value.otherwise, Const) and value.otherwise.value == nothing.value:
        yield from conjuncts(value.cond)
