"""Loop unswitching: what all iterations of a loop ask alike is asked once, before it.

Data with a border are copied by asking of each element whether it is one of the data's; of a row, the answer is often one for
all::

    for j in 0..114:                                                   if 0 <= i - 1 < 112:
        pad[i, j] = x[...] if 0 <= i - 1 < 112 and 0 <= j - 1 < 112        for j in 0..114:
                    else 0                                                     pad[i, j] = x[...] if 0 <= j - 1 < 112 else 0
                                                                       else:
                                                                           for j in 0..114:
                                                                               pad[i, j] = 0

A vector of such a row is a plain load but at its ends (:mod:`ansorlite.codegen.steady`), where it was a masked one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ansorlite.analysis.no_ops import conjuncts
from ansorlite.codegen import control
from ansorlite.codegen.context import Context
from ansorlite.codegen.expressions import evaluate
from ansorlite.codegen.scope import dependence
from ansorlite.loops.nodes import For, LoopKind, Scope, Stmt, Store
from ansorlite.once import once_for_each
from ansorlite.te import functions as te
from ansorlite.te.expr import Expr, Select, Var
from ansorlite.te.traversal import walk


@dataclass(frozen=True)
class Unswitched:
    """``loop_where_it_holds if condition else other_loop``, the condition being the same in all iterations."""

    condition: Expr
    then: For
    otherwise: For


def selected(loop: For) -> tuple[Store, Select] | None:
    """What a nest of loops does that only stores to memory the one or the other of two values; ``None`` of another one."""
    body = loop.body
    while isinstance(body, For) and _stays(body):
        body = body.body
    if isinstance(body, Store) and isinstance(body.value, Select) and body.buffer.scope is not Scope.REGISTER:
        return body, body.value
    return None


def match(c: Context, loop: For) -> Unswitched | None:
    """``loop`` unswitched; ``None`` where its iterations ask nothing that is one for all. Threads of a GPU ask for themselves."""
    return _unswitched(loop) if c.target.gpu is None and _stays(loop) else None


def emit(c: Context, found: Unswitched, body: Callable[[Context, For], None]) -> None:
    """Write it; ``body`` writes a loop."""
    with c.scope.layer(statement=True):
        holds = evaluate(c, found.condition)
    if holds.literal:
        body(c, found.then if holds.text == "true" else found.otherwise)
        return
    fails = c.b.op(f"xor i1 {holds.text}, true")
    for condition, loop in ((holds.text, found.then), (fails, found.otherwise)):
        with control.conditional(c, condition):
            body(c, loop)


def _stays(loop: For) -> bool:
    """Whether its iterations run one after another, or in lanes."""
    return loop.kind in (LoopKind.SERIAL, LoopKind.VECTORIZED)


@once_for_each
def _unswitched(loop: For) -> Unswitched | None:
    found = selected(loop)
    if found is None:
        return None
    store, value = found
    inside = frozenset(_variables(loop))
    parts = list(conjuncts(value.cond))
    alike = [each for each in parts if not _changes(each, inside)]
    if not alike:
        return None
    left = [each for each in parts if each not in alike]
    # What is written twice must not be unswitched twice, and so on.
    if left and any(isinstance(node, Select) for node in walk(value.otherwise)):
        return None
    then = replace(value, cond=te.all(*left)) if left else value.then
    return Unswitched(te.all(*alike), _storing(loop, store, then), _storing(loop, store, value.otherwise))


def _variables(stmt: Stmt) -> list[Var]:
    return [stmt.var, *_variables(stmt.body)] if isinstance(stmt, For) else []


def _changes(condition: Expr, variables: frozenset[Var]) -> bool:
    """Whether it may hold in some iterations only; what is loaded may be stored by another one."""
    on = dependence(condition)
    return on.memory or not on.variables.isdisjoint(variables)


def _storing(stmt: Stmt, store: Store, value: Expr) -> For:
    """The nest ``stmt`` that stores ``value`` instead."""
    assert isinstance(stmt, For)
    inner = replace(store, value=value) if stmt.body is store else _storing(stmt.body, store, value)
    return replace(stmt, body=inner)
