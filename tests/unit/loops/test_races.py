"""What the verifier says of blocks: threads that race, or that do not all come to a phase."""

from __future__ import annotations

import pytest

from ansorlite.loops.nodes import Alloc, Buffer, Function, If, LoopKind, Scope, Stmt, block, index
from ansorlite.loops.verifier import VerifyError, verify
from ansorlite.te.expr import Expr, Var
from tests.gpu_programs import GOLDEN, SMALL
from tests.unit.loops.build import argument, load, loop, store

BLOCK, THREAD = LoopKind.BLOCK, LoopKind.THREAD
N = 64


def shared() -> Buffer:
    return Buffer("s", (N,), "float32", Scope.SHARED)


def function(body: Stmt, *params: Buffer) -> Function:
    return Function("f", params, 1, loop("b", 1, lambda _: body, BLOCK))


@pytest.mark.parametrize("program", [*GOLDEN.values(), *SMALL.values()])
def test_programs_without_races_pass(program: object) -> None:
    verify(program.function)  # type: ignore[attr-defined]


@pytest.mark.parametrize("other", [lambda t: (N - 1) - t, lambda t: t // 2, lambda _: index(0)])
def test_a_thread_loads_what_another_one_stores(other: object) -> None:
    x, y, s = argument("X", N), argument("Y", N), shared()

    def both(t: Var) -> Stmt:
        return block(store(s, (t,), load(x, t)), store(y, (t,), load(s, other(t))))  # type: ignore[operator]

    with pytest.raises(VerifyError, match="a thread may load an element of s that another one stores in the same phase"):
        verify(function(Alloc(s, loop("t", N, both, THREAD)), x, y))


def test_its_own_elements_a_thread_may_load() -> None:
    x, y, s = argument("X", N), argument("Y", N), shared()

    def both(t: Var) -> Stmt:
        return block(store(s, (t,), load(x, t)), store(y, (t,), load(s, t)))

    verify(function(Alloc(s, loop("t", N, both, THREAD)), x, y))


def test_a_store_by_no_thread() -> None:
    x, y = argument("X", N), argument("Y", N)
    phase = loop("t", N, lambda t: store(y, (t,), load(x, t)), THREAD)
    with pytest.raises(VerifyError, match="Y is stored in a block with threads, but by none of them"):
        verify(function(block(store(y, (index(0),), load(x, 0)), phase), x, y))


def test_what_is_loaded_decides_whether_threads_run() -> None:
    x, y = argument("X", N), argument("Y", N)
    phase = loop("t", N, lambda t: store(y, (t,), load(x, t)), THREAD)
    decided: Expr = load(x, 0) > 0.0
    with pytest.raises(VerifyError, match="what decides whether threads run is loaded"):
        verify(function(If(decided, phase), x, y))
