"""Loops some of whose first and last iterations change nothing: they run from the first one that does to the last one.

What lowering writes as::

    for k in 0..3:
        if i + k - 1 >= 0 (else no-op):
            ...

would have in each iteration a branch across which everything in registers must live. Its code is that of
``for k in max(0, 1 - i)..3``, and is not unrolled unless these ends are known. (Halide calls this the trimming of no-ops.)
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import evaluate
from ansorlite.loops.nodes import For, If, LoopKind, Scope, Stmt, index
from ansorlite.loops.visit import stores
from ansorlite.once import once_for_each
from ansorlite.te import functions as te
from ansorlite.te.expr import Binary, Expr
from ansorlite.te.index.form import Affine, form_of
from ansorlite.te.ops import BinaryOp
from ansorlite.te.traversal import free_vars


@dataclass(frozen=True)
class Trimmed:
    """``for var in range(begin, end): body``, which is all that a loop does; it may be empty."""

    begin: Expr
    end: Expr
    body: Stmt


@once_for_each
def trimmed(loop: For) -> Trimmed:
    """``loop`` without the conditions around its body that say where it begins and ends: where there are none, all of it."""
    begin: Expr = index(0)
    end, body = loop.extent, loop.body
    while isinstance(body, If) and body.no_op and (form := _at_least_zero(body.cond)) is not None:
        coefficient = form.coefficients.get(loop.var, 0)
        rest = form.without(loop.var)
        if not coefficient or loop.var in rest.variables:
            break
        if coefficient > 0:
            begin = te.maximum(begin, _quotient(rest, coefficient) * -1)
        else:
            end = te.minimum(end, _quotient(rest, -coefficient) + 1)
        body = body.body
    return Trimmed(begin, end, body)


def written_out(c: Context, loop: For) -> range | None:
    """The iterations of ``loop`` that are written out one after another; ``None`` where it is a loop of the machine code, too."""
    found = trimmed(loop)
    with c.scope.layer(statement=True):
        begin, end, extent = evaluate(c, found.begin), evaluate(c, found.end), evaluate(c, loop.extent)
    if begin.literal and end.literal:
        numbers = range(int(begin.text), int(end.text))
        return numbers if loop.kind is LoopKind.UNROLLED or len(numbers) <= 1 else None
    # Registers have no numbers that are computed: all of a tile runs where it is not known what may be left out.
    return range(int(extent.text)) if extent.literal and _numbers_registers(loop) else None


@once_for_each
def _numbers_registers(loop: For) -> bool:
    """Whether an unrolled loop's variable tells which register is stored to."""
    return loop.kind is LoopKind.UNROLLED and any(
        store.buffer.scope is Scope.REGISTER and loop.var in free_vars(place) for store in stores(loop) for place in store.indices
    )


def _at_least_zero(condition: Expr) -> Affine | None:
    """The form of which an index's comparison ``a >= 0`` speaks."""
    if isinstance(condition, Binary) and condition.op is BinaryOp.GE:
        return form_of(condition.a).plus(form_of(condition.b), -1)
    return None


def _quotient(form: Affine, divisor: int) -> Expr:
    return form.expr() // divisor if divisor > 1 else form.expr()
