"""Random loop functions, all of them legal when run in program order.

Every index is brought into its buffer by a remainder or a clamp, so that any expression may be one.
"""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, If, Load, LoopKind, Scope, Stmt, Store, block, index
from ansorlite.loops.verifier import verify
from ansorlite.te.expr import Const, Expr, Var, binary, cast, select
from ansorlite.te.functions import maximum, minimum
from ansorlite.te.ops import BinaryOp

COMPARISONS = [BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE]


def pick_op(draw: Callable, ops: list[BinaryOp], a: Expr, b: Expr) -> Expr:
    return binary(draw(st.sampled_from(ops)), a, b)


@st.composite
def conditions(draw: st.DrawFn, variables: tuple[Var, ...], depth: int) -> Expr:
    """Comparisons of index expressions, and what ``and``, ``or``, ``not`` make of them."""
    if depth > 0 and draw(st.integers(0, 3)) == 0:
        a, b = draw(conditions(variables, depth - 1)), draw(conditions(variables, depth - 1))
        return draw(st.sampled_from([binary(BinaryOp.AND, a, b), binary(BinaryOp.OR, a, b), ~a]))
    a, b = draw(index_expressions(variables, depth - 1)), draw(index_expressions(variables, depth - 1))
    return pick_op(draw, COMPARISONS, a, b)


@st.composite
def index_expressions(draw: st.DrawFn, variables: tuple[Var, ...], depth: int = 3) -> Expr:
    """Index arithmetic over loop variables: what tiling, fusing, padding and clamping make, and worse."""
    if depth <= 0 or draw(st.integers(0, 4)) == 0:
        return (
            draw(st.sampled_from([*variables, *variables]))
            if variables and draw(st.booleans())
            else index(draw(st.integers(-9, 9)))
        )
    a, b = draw(index_expressions(variables, depth - 1)), draw(index_expressions(variables, depth - 1))
    kind = draw(st.sampled_from(["sum", "scaled", "divided", "extreme", "select", "any"]))
    if kind == "sum":
        return pick_op(draw, [BinaryOp.ADD, BinaryOp.SUB], a, b)
    if kind == "scaled":
        return a * draw(st.sampled_from([-3, -1, 1, 2, 4, 8, 12])) + b
    if kind == "divided":
        return pick_op(draw, [BinaryOp.FLOORDIV, BinaryOp.MOD], a, index(draw(st.sampled_from([-3, 1, 2, 4, 5, 8, 12]))))
    if kind == "extreme":
        return pick_op(draw, [BinaryOp.MIN, BinaryOp.MAX], a, b)
    if kind == "select":
        return select(draw(conditions(variables, depth - 1)), a, b)
    return pick_op(draw, [BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.BITXOR], a, b)


@st.composite
def elements(draw: st.DrawFn, buffer: Buffer, variables: tuple[Var, ...]) -> tuple[Expr, ...]:
    """Indices within ``buffer``."""
    result = []
    for extent in buffer.shape:
        wild = draw(index_expressions(variables, 2))
        result.append(draw(st.sampled_from([wild % extent, minimum(maximum(wild, 0), extent - 1)])))
    return tuple(result)


@st.composite
def values(draw: st.DrawFn, dtype: str, readable: tuple[Buffer, ...], variables: tuple[Var, ...], depth: int = 2) -> Expr:
    """An expression of ``dtype`` over loads and loop variables."""
    if depth > 0 and draw(st.booleans()):
        a, b = draw(values(dtype, readable, variables, depth - 1)), draw(values(dtype, readable, variables, depth - 1))
        if draw(st.integers(0, 3)) == 0:
            return select(draw(conditions(variables, 1)), a, b)
        return pick_op(draw, [BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MAX], a, b)
    if draw(st.integers(0, 3)) == 0:
        return cast(draw(index_expressions(variables, 2)), dtype)
    buffer = draw(st.sampled_from(readable))
    return cast(Load(buffer, draw(elements(buffer, variables)), buffer.dtype), dtype)


@st.composite
def bodies(
    draw: st.DrawFn, variables: tuple[Var, ...], readable: tuple[Buffer, ...], writable: tuple[Buffer, ...], depth: int
) -> Stmt:
    """Statements of at most ``depth`` levels."""
    kind = draw(st.sampled_from(["store", "loop", "loop", "if", "block", "alloc"])) if depth > 0 else "store"
    if kind == "store":
        buffer = draw(st.sampled_from(writable))
        return Store(buffer, draw(elements(buffer, variables)), draw(values(buffer.dtype, readable, variables)))
    if kind == "loop":
        var = Var(draw(st.sampled_from("ijk")))
        extent: Expr = index(draw(st.sampled_from([1, 2, 3, 4, 5])))
        if draw(st.integers(0, 3)) == 0:
            extent = minimum(extent, draw(index_expressions(variables, 1)))
        constant = isinstance(extent, Const)
        loop_kind = draw(st.sampled_from([LoopKind.SERIAL, LoopKind.UNROLLED])) if constant else LoopKind.SERIAL
        return For(var, extent, loop_kind, draw(bodies((*variables, var), readable, writable, depth - 1)))
    if kind == "if":
        return If(draw(conditions(variables, 2)), draw(bodies(variables, readable, writable, depth - 1)))
    if kind == "block":
        return block(*(draw(bodies(variables, readable, writable, depth - 1)) for _ in range(draw(st.integers(0, 3)))))
    fresh = Buffer("T", (3,), draw(st.sampled_from(["int64", "float32"])), Scope.LOCAL)
    return Alloc(fresh, draw(bodies(variables, (*readable, fresh), (*writable, fresh), depth - 1)))


@st.composite
def functions(draw: st.DrawFn, depth: int = 5) -> Function:
    """A function of one float32 and one int64 input, and one output of each."""
    x, n = Buffer("X", (3, 4), "float32", Scope.ARGUMENT), Buffer("N", (5,), "int64", Scope.ARGUMENT)
    y, m = Buffer("Y", (4, 3), "float32", Scope.ARGUMENT), Buffer("M", (2, 6), "int64", Scope.ARGUMENT)
    body = block(*(draw(bodies((), (x, n, y, m), (y, m), depth)) for _ in range(draw(st.integers(1, 2)))))
    return Function("random", (x, n, y, m), 2, body)


def arguments(function: Function, rng: np.random.Generator) -> list[np.ndarray]:
    """Small random numbers for every param, the outputs too."""
    return [rng.integers(-9, 9, buffer.shape).astype(buffer.dtype) for buffer in function.params]


def assert_legal_and_the_same(fresh: Function, function: Function) -> None:
    """``fresh`` is legal loop IR, and leaves in every param what ``function`` does."""
    verify(fresh)
    mine = arguments(function, np.random.default_rng(0))
    theirs = [array.copy() for array in mine]
    interpret(function, mine)
    interpret(fresh, theirs)
    for x, y in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(x, y)
