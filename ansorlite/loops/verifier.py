"""What is legal loop IR: a table of checks per node type, run over a whole function.

A failed check is a bug of lowering or of a pass, never the user's. Tests run this between passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from ansorlite.loops import checks
from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    FetchGroup,
    For,
    Function,
    If,
    Intrinsic,
    Load,
    Prefetch,
    Stmt,
    Store,
    children,
)
from ansorlite.loops.printer import text
from ansorlite.loops.visit import expressions
from ansorlite.te.expr import Expr, Select, Var
from ansorlite.te.index.simplify import IndexAlgebra
from ansorlite.te.traversal import walk


class VerifyError(AssertionError):
    """A function that is not legal loop IR."""


Checks: TypeAlias = dict[type, tuple[Callable[[Any, checks.Site], str | None], ...]]

#: Node type -> what must hold of it. A check says what is wrong, or nothing.
CHECKS: Final[Checks] = {
    Function: (checks.params_are_arguments, checks.params_are_dense, checks.has_outputs, checks.prepared_follows_from_constants),
    For: (
        checks.variable_is_bound_once,
        checks.extent_is_an_index,
        checks.extent_is_constant,
        checks.lanes_suit_the_kind,
        checks.vectorized_is_innermost,
        checks.parallel_is_not_nested,
        checks.bound_loops_nest_in_order,
    ),
    If: (checks.condition_is_bool,),
    Intrinsic: (checks.fold_suits_the_threads,),
    Alloc: (checks.buffer_is_new, checks.pads_suit_the_buffer, checks.swizzle_suits_the_buffer, checks.scope_suits_the_place),
    FetchGroup: (checks.whole_blocks_wait,),
    Await: (checks.whole_blocks_wait,),
    Block: (),
    Prefetch: (),
    Var: (checks.variable_is_in_scope,),
    Load: (
        checks.buffer_exists,
        checks.indices_suit_the_buffer,
        checks.load_has_the_buffers_dtype,
        checks.register_indices_are_constant,
        checks.private_elements_are_the_threads_own,
        checks.indices_are_within_bounds,
    ),
    Store: (
        checks.buffer_exists,
        checks.buffer_may_be_stored,
        checks.indices_suit_the_buffer,
        checks.value_has_the_buffers_dtype,
        checks.register_indices_are_constant,
        checks.private_elements_are_the_threads_own,
        checks.indices_are_within_bounds,
        checks.parallel_iterations_do_not_collide,
        checks.fetches_are_grouped,
    ),
}

#: What must hold of a loop as a whole, once everything below it is known to be well formed.
PROMISES: Final[Checks] = {
    For: (
        checks.lanes_do_not_depend_on_each_other,
        checks.threads_take_one_way,
        checks.threads_do_not_race,
        checks.nothing_in_flight_is_touched,
    ),
    Intrinsic: (checks.product_suits_the_threads,),
}


def verify(function: Function) -> None:
    """Check every node of ``function``.

    Indices are held against their bounds where intervals decide it; the interpreter checks the rest.

    Raises:
        VerifyError: the first failed check, with the statement's text.
    """
    place = checks.Site(function, algebra=IndexAlgebra())
    _check(CHECKS, function, place, function.body)
    _Walk(set()).statement(function.body, replace(place, buffers=dict.fromkeys(function.params, 0)))


def _check(table: Checks, node: object, place: checks.Site, at: Stmt) -> None:
    for check in table.get(type(node), ()):
        problem = check(node, place)
        if problem is not None:
            where = "\n    ".join(text(at).splitlines()[:4])
            raise VerifyError(f"{check.__name__}: {problem}, in {place.function.name}:\n    {where}")


@dataclass
class _Walk:
    """Visits every node once, with the place it is at.

    Attributes:
        seen: every variable and buffer bound so far.
    """

    seen: set[Var | Buffer] = field(default_factory=set)

    def statement(self, stmt: Stmt, place: checks.Site) -> None:
        if type(stmt) not in CHECKS:
            raise VerifyError(f"{type(stmt).__name__} is not a statement of the loop IR")
        here = replace(place, seen=frozenset(self.seen))
        in_an_arm = replace(here, guarded=True)
        for expr in expressions(stmt):
            for node, lazy in _with_laziness(expr):
                _check(CHECKS, node, in_an_arm if lazy else here, stmt)
        match stmt:
            case For():
                place.algebra.bind(stmt.var, stmt.extent)
                _check(CHECKS, stmt, here, stmt)
                self.seen.add(stmt.var)
                below = replace(place, loops=(*place.loops, stmt))
            case If():
                _check(CHECKS, stmt, here, stmt)
                below = replace(place, guarded=True)
            case Alloc():
                _check(CHECKS, stmt, here, stmt)
                self.seen.add(stmt.buffer)
                below = replace(place, buffers={**place.buffers, stmt.buffer: len(place.loops)})
            case Intrinsic():
                _check(CHECKS, stmt, here, stmt)
                below = replace(place, inside_intrinsic=True)
            case FetchGroup():
                _check(CHECKS, stmt, here, stmt)
                below = replace(place, grouped=True)
            case _:
                _check(CHECKS, stmt, here, stmt)
                below = place
        for child in children(stmt):
            self.statement(child, below)
        _check(PROMISES, stmt, place, stmt)


def _with_laziness(expr: Expr) -> Iterator[tuple[Expr, bool]]:
    """Every node below ``expr``, operands first, and whether it is only ever in an arm of a select."""
    strict: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if node not in strict:
            strict.add(node)
            stack.extend((node.cond,) if isinstance(node, Select) else node.children())
    for node in walk(expr):
        yield node, node not in strict
