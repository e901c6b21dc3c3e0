"""Rings: what a loop copies, copied ahead; and what is told of copies that have not landed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorlite.loops.emulate import emulate
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Await, Buffer, For, Function, LoopKind, Role, Scope, Stmt, Store, block, statements
from ansorlite.loops.phases import barriers
from ansorlite.loops.pipeline import pipelined
from ansorlite.loops.printer import text
from ansorlite.loops.simplify import simplify
from ansorlite.loops.through_registers import through_registers
from ansorlite.loops.verifier import VerifyError, verify
from ansorlite.loops.visit import map_stmt
from ansorlite.target import GPUS, host
from ansorlite.te.expr import Var
from tests.on_gpu import TARGET, compiled, run
from tests.ptx_machine import PtxError, launch
from tests.unit.loops.build import argument, load, loop, store

BLOCK, THREAD = LoopKind.BLOCK, LoopKind.THREAD
N, ROWS = 32, 6
X, Y = argument("X", ROWS, N), argument("Y", ROWS, N)


def sliding(stages: int, shape: tuple[int, ...] = (N,), outer: int = 1) -> Function:
    """Each row backwards: what a thread reads of a row another one has copied."""
    shared = Buffer("S", shape, "float32", Scope.SHARED)

    def row(k: Var) -> Stmt:
        copy = loop("t", N, lambda t: store(shared, (t,), load(X, k, t)), THREAD)
        use = loop("t", N, lambda t: store(Y, (k, t), load(shared, (N - 1) - t) * 2.0), THREAD)
        return Alloc(shared, block(copy, use))

    def rows() -> Stmt:
        return pipelined(loop("k", ROWS, row), (shared,), stages)

    body = rows() if outer == 1 else loop("again", outer, lambda _: rows())
    return Function("f", (X, Y), 1, loop("b", 1, lambda _: body, BLOCK))


def computed(function: Function, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(1).random((ROWS, N), dtype=np.float32)
    y = np.full((ROWS, N), np.nan, np.float32)
    interpret(function, [x, y], reorder=np.random.default_rng(seed))
    return y, x[:, ::-1] * np.float32(2)


def with_awaits(function: Function, more: int) -> Function:
    """The function with that many more groups pending at each await."""
    later = lambda stmt: Await(stmt.pending + more) if isinstance(stmt, Await) else None  # noqa: E731
    return replace(function, body=map_stmt(function.body, later))


@pytest.mark.parametrize("outer", [1, 2])
@pytest.mark.parametrize("stages", [1, 2, 3, 6, 9])
def test_rings_compute_the_same(stages: int, outer: int) -> None:
    function = sliding(stages, outer=outer)
    for each in (function, simplify(function), emulate(function, host())):
        verify(each)
        y, expected = computed(each)
        np.testing.assert_array_equal(y, expected)
    x = np.random.default_rng(1).random((ROWS, N), dtype=np.float32)
    y = np.full((ROWS, N), np.nan, np.float32)
    (counts,) = run(function, [x, y])
    np.testing.assert_array_equal(y, x[:, ::-1] * np.float32(2))
    assert (counts.instructions["cp"] > 0) == (stages > 1)


@pytest.mark.parametrize(("stages", "outer", "number"), [(1, 1, 2), (2, 1, 0), (4, 1, 0), (4, 2, 1)])
def test_an_iteration_has_one_barrier(stages: int, outer: int, number: int) -> None:
    """That of its await; a ring that is entered again is left by all threads first."""
    (nest,) = (stmt for stmt in statements(sliding(stages, outer=outer).body) if isinstance(stmt, For) and stmt.kind is BLOCK)
    assert len(barriers(nest)) == number


def test_what_is_read_before_its_await_is_told() -> None:
    """By the verifier, and by the interpreter, where it lands late."""
    late = with_awaits(sliding(3), 1)
    with pytest.raises(VerifyError, match="an element of S is touched that was fetched, but may not have landed yet"):
        verify(late)
    y, expected = computed(late)
    assert not np.array_equal(y, expected)


def test_a_slot_that_is_too_near_is_told() -> None:
    """What fetches into the slot that is read in the same iteration."""

    def near(stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, Store) and stmt.role is Role.FETCH:
            return replace(stmt, indices=((stmt.indices[0] + 1) % 3, *stmt.indices[1:]))
        return None

    function = sliding(3)
    wrong = replace(function, body=map_stmt(function.body, near))
    with pytest.raises(VerifyError, match="may not have landed yet"):
        verify(wrong)


def test_a_ring_is_printed() -> None:
    shown = text(sliding(3))
    for line in ("alloc S: float32[3, 32] in SHARED", "for p in 0..2:", "group:", "await all groups but 1", "if k + 2 < 6:"):
        assert line in shown, shown


def test_slots_begin_where_vectors_may() -> None:
    (ring,) = (stmt.buffer for stmt in statements(sliding(3, (N + 1,)).body) if isinstance(stmt, Alloc))
    assert ring.shape == (3, N + 1)
    assert ring.strides == (48, 1)
    assert ring.nbytes == 3 * 192


def test_copies_land_at_the_wait_of_the_machine() -> None:
    """Without its waits a program reads what has not landed: the machine for PTX finds that, too."""
    ptx, (kernel,) = compiled(sliding(3))
    arrays = [np.zeros((ROWS, N), np.float32), np.zeros((ROWS, N), np.float32)]
    launch(ptx, kernel.grid, arrays, shared=kernel.shared)
    without = "\n".join(line for line in ptx.splitlines() if "wait_group" not in line)
    with pytest.raises(PtxError, match="race: a copy that has not landed yet"):
        launch(without, kernel.grid, arrays, shared=kernel.shared)


@pytest.mark.parametrize("stages", [2, 3])
def test_processors_without_such_copies_keep_them_in_registers(stages: int) -> None:
    target = replace(TARGET, gpu=replace(GPUS["a100"].gpu, async_copies=False))
    function = through_registers(simplify(sliding(stages)), target)
    verify(function)
    y, expected = computed(function)
    np.testing.assert_array_equal(y, expected)
    ptx, (kernel,) = compiled(function, target)
    assert "cp.async" not in ptx
    assert "local" not in ptx
    # What a step copies ahead is loaded before it computes, and stored after.
    step = ptx[ptx.rindex("bar.sync", 0, ptx.rindex("ld.global")) :]
    assert step.index("ld.global") < step.index("ld.shared") < step.index("st.shared")
    x = np.random.default_rng(1).random((ROWS, N), dtype=np.float32)
    y = np.full((ROWS, N), np.nan, np.float32)
    launch(ptx, kernel.grid, [x, y], shared=kernel.shared)
    np.testing.assert_array_equal(y, x[:, ::-1] * np.float32(2))
