"""Every check of the verifier refuses the smallest function that breaks it, and nothing that is legal."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from ansorlite.loops import checks
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.intrinsics import fold
from ansorlite.loops.nodes import (
    Alloc,
    Await,
    Buffer,
    FetchGroup,
    For,
    Function,
    If,
    Intrinsic,
    Load,
    LoopKind,
    Multiply,
    Role,
    Scope,
    Stmt,
    Store,
    block,
    index,
)
from ansorlite.loops.simplify import simplify
from ansorlite.loops.verifier import CHECKS, PROMISES, VerifyError, verify
from ansorlite.loops.visit import map_stmt
from ansorlite.machine.matrix import AMPERE
from ansorlite.te.expr import Expr, Var, binary, cast, const, select
from ansorlite.te.functions import minimum
from ansorlite.te.ops import BinaryOp, ReduceOp

from .build import argument, load, loop, store, tile_product, tiled_matmul
from .strategies import functions

PARALLEL, VECTORIZED, UNROLLED = LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.UNROLLED
X, Y, N = argument("X", 8), argument("Y", 8), argument("N", 8, dtype="int64")
ONE = const(1.0, "float32")


def function(body: Stmt) -> Function:
    return Function("f", (X, N, Y), 1, body)


def local(*shape: int, scope: Scope = Scope.LOCAL) -> Buffer:
    return Buffer("T", shape, "float32", scope)


def add_to(buffer: Buffer, *indices: Expr | int) -> Store:
    return store(buffer, indices, load(buffer, *indices) + ONE)


def replaced(function: Function, does: Multiply) -> Function:
    """The function with another product in the place of its own."""

    def change(stmt: Stmt) -> Stmt | None:
        return Intrinsic(does, stmt.body) if isinstance(stmt, Intrinsic) else None

    return replace(function, body=map_stmt(function.body, change))


def twice_the_same_variable() -> Function:
    var = Var("i")
    first, second = (For(var, index(4), LoopKind.SERIAL, store(Y, (var,), ONE)) for _ in range(2))
    return function(block(first, second))


def twice_the_same_buffer() -> Function:
    t = local()
    return function(block(*(Alloc(t, store(t, (), ONE)) for _ in range(2))))


def after_its_alloc() -> Function:
    t = local()
    return function(block(Alloc(t, store(t, (), ONE)), store(Y, (0,), load(t))))


def in_register(body: Callable[[Buffer], Stmt]) -> Function:
    t = local(8, scope=Scope.REGISTER)
    return function(Alloc(t, body(t)))


def prepared_from_an_argument() -> Function:
    t = local(8, scope=Scope.PREPARED)
    copy = loop("i", 8, lambda i: store(t, (i,), load(X, i)))
    return function(Alloc(t, block(copy, loop("j", 8, lambda j: store(Y, (j,), load(t, j))))))


def bound(outer: LoopKind, inner: LoopKind) -> Function:
    return function(loop("p", 2, lambda p: loop("q", 4, lambda q: store(Y, (p * 4 + q,), ONE), inner), outer))


def in_block(buffer: Buffer, body: Callable[[Buffer], Stmt]) -> Function:
    return function(loop("b", 2, lambda _: Alloc(buffer, body(buffer)), LoopKind.BLOCK))


def threads(body: Callable[[Var], Stmt], extent: int = 4) -> Stmt:
    return loop("t", extent, body, LoopKind.THREAD)


def private(*shape: int) -> Buffer:
    return local(*shape, scope=Scope.PRIVATE)


def sum_of(source: Buffer, width: int) -> Stmt:
    return fold(ReduceOp.SUM, source, source, width)


def parallel(body: Callable[[Var], Stmt], extent: int = 4) -> Function:
    return function(loop("p", extent, body, PARALLEL))


def vectorized(body: Callable[[Var], Stmt], extent: int = 4, lanes: int = 4) -> Function:
    return function(loop("v", extent, body, VECTORIZED, lanes))


def shared_temporary() -> Function:
    t = local(1)
    return function(Alloc(t, loop("p", 4, lambda _: add_to(t, 0), PARALLEL)))


UNUSED = Var("unused")

ILLEGAL = [
    (checks.params_are_arguments, Function("f", (X, local(8)), 1, block())),
    (checks.params_are_arguments, Function("f", (X, X), 1, block())),
    (checks.has_outputs, Function("f", (X, Y), 0, block())),
    (checks.variable_is_bound_once, twice_the_same_variable()),
    (checks.variable_is_in_scope, function(store(Y, (UNUSED,), ONE))),
    (checks.variable_is_in_scope, function(For(UNUSED, UNUSED + 1, LoopKind.SERIAL, block()))),
    (checks.extent_is_an_index, function(loop("i", const(4, "int32"), lambda i: store(Y, (i,), ONE)))),
    (checks.extent_is_constant, function(loop("i", 4, lambda i: loop("p", i + 1, lambda p: store(Y, (p,), ONE), PARALLEL)))),
    (checks.extent_is_constant, function(loop("i", 4, lambda i: loop("u", i + 1, lambda u: store(Y, (u,), ONE), UNROLLED)))),
    (checks.lanes_suit_the_kind, vectorized(lambda v: store(Y, (v,), ONE), lanes=0)),
    (checks.lanes_suit_the_kind, function(loop("i", 4, lambda i: store(Y, (i,), ONE), lanes=4))),
    (checks.vectorized_is_innermost, vectorized(lambda v: loop("i", 2, lambda i: store(Y, (v * 2 + i,), ONE)))),
    (checks.vectorized_is_innermost, vectorized(lambda v: Alloc(local(), store(Y, (v,), ONE)))),
    (checks.parallel_is_not_nested, parallel(lambda p: loop("q", 2, lambda q: store(Y, (p * 2 + q,), ONE), PARALLEL))),
    (checks.bound_loops_nest_in_order, bound(LoopKind.THREAD, LoopKind.BLOCK)),
    (checks.bound_loops_nest_in_order, bound(LoopKind.BLOCK, LoopKind.BLOCK)),
    (checks.bound_loops_nest_in_order, bound(LoopKind.WARP, LoopKind.THREAD)),
    (checks.pads_suit_the_buffer, function(Alloc(replace(local(2, 3), pads=(1,)), store(Y, (0,), ONE)))),
    (checks.pads_suit_the_buffer, function(Alloc(replace(local(2, scope=Scope.REGISTER), pads=(1,)), store(Y, (0,), ONE)))),
    (checks.params_are_dense, Function("f", (replace(Y, pads=(1,)),), 1, block())),
    (
        checks.scope_suits_the_place,
        function(loop("t", 4, lambda t: Alloc(local(4, scope=Scope.SHARED), store(Y, (t,), ONE)), LoopKind.THREAD)),
    ),
    (checks.condition_is_bool, function(If(index(1), store(Y, (0,), ONE)))),
    (checks.buffer_is_new, twice_the_same_buffer()),
    (checks.buffer_is_new, function(Alloc(Y, store(Y, (0,), ONE)))),
    (checks.scope_suits_the_place, function(Alloc(argument("T", 1), block()))),
    (checks.scope_suits_the_place, parallel(lambda _: Alloc(local(scope=Scope.GLOBAL), block()))),
    (checks.buffer_exists, after_its_alloc()),
    (checks.buffer_exists, function(store(local(4), (0,), ONE))),
    (checks.buffer_may_be_stored, function(store(X, (0,), ONE))),
    (checks.indices_suit_the_buffer, function(store(Y, (0, 0), ONE))),
    (checks.indices_suit_the_buffer, function(store(Y, (0,), Load(X, (const(0, "int32"),), "float32")))),
    (checks.load_has_the_buffers_dtype, function(store(Y, (0,), cast(Load(X, (index(0),), "float64"), "float32")))),
    (checks.prepared_follows_from_constants, prepared_from_an_argument()),
    (checks.scope_suits_the_place, function(loop("i", 2, lambda i: Alloc(local(scope=Scope.PREPARED), store(Y, (i,), ONE))))),
    (checks.value_has_the_buffers_dtype, function(store(Y, (0,), const(1, "int64")))),
    (checks.register_indices_are_constant, in_register(lambda t: loop("i", 8, lambda i: store(t, (i,), ONE)))),
    (checks.register_indices_are_constant, in_register(lambda t: store(Y, (0,), load(t, load(N, 0))))),
    (checks.indices_are_within_bounds, function(store(Y, (8,), ONE))),
    (checks.indices_are_within_bounds, function(loop("i", 8, lambda i: store(Y, (i,), load(X, i - 1))))),
    (checks.indices_are_within_bounds, function(loop("i", 3, lambda i: store(Y, (minimum(i, 1) + 8,), ONE)))),
    (checks.parallel_iterations_do_not_collide, parallel(lambda _: add_to(Y, 0))),
    (checks.parallel_iterations_do_not_collide, parallel(lambda p: loop("j", 2, lambda j: add_to(Y, minimum(p * 2, 5) + j)))),
    (checks.parallel_iterations_do_not_collide, shared_temporary()),
    (checks.scope_suits_the_place, function(Alloc(local(scope=Scope.PRIVATE), block()))),
    (
        checks.scope_suits_the_place,
        in_block(private(4), lambda _: threads(lambda _: Alloc(local(4, scope=Scope.SHARED), block()))),
    ),
    (checks.private_elements_are_the_threads_own, in_block(private(4), lambda p: threads(lambda t: store(p, (3 - t,), ONE)))),
    (checks.private_elements_are_the_threads_own, in_block(private(4), lambda p: store(p, (0,), ONE))),
    (checks.fold_suits_the_threads, in_block(private(4), lambda p: sum_of(p, 3))),
    (checks.fold_suits_the_threads, in_block(local(4, scope=Scope.SHARED), lambda p: sum_of(p, 4))),
    (checks.fold_suits_the_threads, in_block(private(4), lambda p: threads(lambda _: sum_of(p, 4)))),
    (checks.product_suits_the_threads, tile_product(AMPERE[0], 16)),
    (checks.product_suits_the_threads, tile_product(AMPERE[0], row=lambda t: t % 8)),
    (checks.product_suits_the_threads, tile_product(AMPERE[0], column=lambda t: t // 8 % 4)),
    (checks.product_suits_the_threads, replaced(tile_product(AMPERE[0]), Multiply(AMPERE[1]))),
    (checks.product_suits_the_threads, in_block(private(4), lambda p: Intrinsic(Multiply(AMPERE[0]), store(p, (0,), ONE)))),
    (
        checks.threads_do_not_race,
        in_block(local(4, scope=Scope.SHARED), lambda s: threads(lambda t: store(s, (t,), load(s, 3 - t)))),
    ),
    (
        checks.threads_take_one_way,
        in_block(private(4), lambda p: block(store(Y, (0,), ONE), threads(lambda t: store(p, (t,), ONE)))),
    ),
    (checks.lanes_do_not_depend_on_each_other, vectorized(lambda _: store(Y, (0,), ONE))),
    (checks.lanes_do_not_depend_on_each_other, vectorized(lambda v: store(Y, (v + 1,), load(Y, v)))),
    (
        checks.lanes_do_not_depend_on_each_other,
        vectorized(lambda v: block(store(Y, (v,), ONE), store(Y, (v + 4,), load(Y, v + 1)))),
    ),
]


def fetched(then: Callable[[Buffer], Stmt]) -> Function:
    """A fetch, and then something else."""
    s = local(4, scope=Scope.SHARED)
    fetch = FetchGroup(threads(lambda t: Store(s, (t,), ONE, role=Role.FETCH)))
    return in_block(s, lambda s: block(fetch, then(s)))


ILLEGAL += [
    (checks.swizzle_suits_the_buffer, in_block(replace(local(2, 8, scope=Scope.SHARED), swizzle=4), lambda _: block())),
    (checks.swizzle_suits_the_buffer, in_block(replace(local(2, 48, scope=Scope.SHARED), swizzle=3), lambda _: block())),
    (checks.swizzle_suits_the_buffer, in_block(replace(local(64, scope=Scope.SHARED), swizzle=2), lambda _: block())),
    (checks.whole_blocks_wait, function(Await(0))),
    (checks.whole_blocks_wait, in_block(private(4), lambda _: threads(lambda _: Await(0)))),
    (checks.whole_blocks_wait, in_block(private(4), lambda _: FetchGroup(Await(0)))),
    (checks.whole_blocks_wait, in_block(private(4), lambda _: Await(-1))),
    (
        checks.fetches_are_grouped,
        in_block(local(4, scope=Scope.SHARED), lambda s: threads(lambda t: Store(s, (t,), ONE, role=Role.FETCH))),
    ),
    (
        checks.fetches_are_grouped,
        in_block(private(4), lambda p: FetchGroup(threads(lambda t: Store(p, (t,), ONE, role=Role.FETCH)))),
    ),
    (checks.nothing_in_flight_is_touched, fetched(lambda s: threads(lambda t: store(Y, (t,), load(s, t))))),
    (checks.nothing_in_flight_is_touched, fetched(lambda s: threads(lambda t: store(s, (t,), ONE)))),
    (
        checks.nothing_in_flight_is_touched,
        fetched(lambda s: block(Await(1), threads(lambda t: store(Y, (t,), load(s, 3 - t))))),
    ),
]


@pytest.mark.parametrize(("check", "wrong"), ILLEGAL, ids=lambda x: getattr(x, "__name__", ""))
def test_illegal_functions_fail_the_check_that_is_meant(check: Callable[..., str | None], wrong: Function) -> None:
    with pytest.raises(VerifyError, match=f"^{check.__name__}: "):
        verify(wrong)


def test_every_check_of_the_table_has_an_illegal_example() -> None:
    tabled = {check for table in (CHECKS, PROMISES) for row in table.values() for check in row}
    assert tabled == {check for check, _ in ILLEGAL}


def everybody_adds_up() -> Function:
    p, s = private(8), local(8, scope=Scope.SHARED)
    first = threads(lambda t: block(store(p, (t,), load(X, t)), store(s, (7 - t,), load(X, t))), 8)
    last = threads(lambda t: store(Y, (t,), load(p, t) + load(s, t)), 8)
    return function(loop("b", 1, lambda _: Alloc(p, Alloc(s, block(first, sum_of(p, 4), last))), LoopKind.BLOCK))


LEGAL = [
    *map(tile_product, AMPERE),
    tile_product(AMPERE[0], 64),
    everybody_adds_up(),
    bound(LoopKind.BLOCK, LoopKind.THREAD),
    bound(LoopKind.WARP, LoopKind.LANE),
    tiled_matmul(5, 13, 7, 8),
    # An index that is out of bounds only where nothing is loaded.
    function(loop("i", 8, lambda i: store(Y, (i,), select(i >= 1, load(X, i - 1), 0.0)))),
    function(loop("i", 9, lambda i: If(i < 8, store(Y, (i,), ONE)))),
    # Shifted tiles store the same value twice.
    parallel(
        lambda p: loop("v", 4, lambda v: store(Y, (minimum(p * 3, 4) + v,), load(X, minimum(p * 3, 4) + v)), VECTORIZED, 4), 3
    ),
    # A fused loop: quotient and remainder together tell iterations apart.
    parallel(lambda p: add_to(Y, p // 4 * 4 + p % 4), 8),
    parallel(lambda _: Alloc(local(1), store(Y, (0,), ONE))),
    parallel(lambda _: add_to(Y, 0), extent=1),
    vectorized(lambda v: store(Y, (v,), load(Y, v + 1))),
    vectorized(lambda v: store(Y, (v + 4,), load(Y, v))),
    vectorized(lambda v: block(store(Y, (v,), ONE), store(Y, (v + 4,), load(Y, v)))),
    in_register(lambda t: loop("u", 8, lambda u: block(store(t, (u,), ONE), store(Y, (u,), load(t, u))), UNROLLED)),
]


@pytest.mark.parametrize("right", LEGAL, ids=range(len(LEGAL)))
def test_legal_functions_pass_before_and_after_simplifying(right: Function) -> None:
    verify(right)
    verify(simplify(right))


@pytest.mark.parametrize("right", LEGAL, ids=range(len(LEGAL)))
def test_what_passes_gives_one_result_in_any_order(right: Function) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.integers(0, 8, buffer.shape).astype(buffer.dtype) for buffer in right.params]
    reordered = [array.copy() for array in arrays]
    interpret(right, arrays)
    interpret(right, reordered, reorder=rng)
    np.testing.assert_array_equal(arrays[-1], reordered[-1])


def test_message_has_the_statement() -> None:
    wrong = function(loop("i", 4, lambda i: store(Y, (i + 6,), ONE)))
    message = r"index 0 of Y\[8\] runs from 6 to 9, in f:\n    Y\[i \+ 6\] = 1\.0"
    with pytest.raises(VerifyError, match=message):
        verify(wrong)


@given(functions())
@settings(max_examples=15, deadline=None)
def test_random_legal_functions_pass(random: Function) -> None:
    verify(random)
    verify(simplify(random))


def test_conditions_of_selects_are_always_checked() -> None:
    cond = binary(BinaryOp.GT, load(X, 9), 0.0)
    with pytest.raises(VerifyError, match="indices_are_within_bounds"):
        verify(function(store(Y, (0,), select(cond, load(X, 10), 0.0))))
