"""Random legal functions, compiled, against the interpreter."""

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, Function, If, Load, LoopKind, Scope, Stmt, block
from ansorlite.loops.visit import map_stmt
from ansorlite.platforms import build
from ansorlite.target import LEVELS, Target, host
from ansorlite.te.expr import Expr, Var, binary, const, select
from ansorlite.te.functions import all, minimum
from ansorlite.te.ops import BinaryOp
from tests.running import How, how, run_compiled
from tests.unit.loops.build import argument, loop, store
from tests.unit.loops.strategies import arguments, conditions, functions, values

HOST = host(threads=2)
#: The machine, and lesser ones of its kind: other vector lengths, no masks, no fused multiply-add, no halves.
TARGETS = [HOST, *(t for t in LEVELS.values() if t.triple == HOST.triple and t.vector_bytes < HOST.vector_bytes)]
SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def check(function: Function, seed: int, target: Target = HOST) -> None:
    """Compiled and interpreted leave the same in every parameter; compiling alone counts where the target cannot run."""
    arrays = arguments(function, np.random.default_rng(seed))
    copies = [array.copy() for array in arrays]
    compiled = build(function, target)
    if how(target) is How.COMPILED:
        return
    run_compiled(compiled, function, target, *copies)
    interpret(function, arrays)
    for expected, found in zip(arrays, copies, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def filled(stmt: Stmt) -> Stmt | None:
    """Every allocation filled with ones, since a fresh one holds garbage."""
    if not isinstance(stmt, Alloc):
        return None
    buffer = stmt.buffer
    fill = loop("fill", buffer.size, lambda i: store(buffer, (i,), const(1, buffer.dtype)))
    return Alloc(buffer, block(fill, stmt.body))


@SETTINGS
@given(functions(), st.integers(0, 1 << 30))
def test_scalar_code(function: Function, seed: int) -> None:
    check(Function(function.name, function.params, function.outputs, map_stmt(function.body, filled)), seed)


@st.composite
def guarded(draw: st.DrawFn, buffer: Buffer, i: Var, otherwise: Expr) -> Expr:
    """A read that is out of bounds on some lanes, behind a condition that keeps it from being executed there."""
    scale, shift = draw(st.sampled_from([-1, 0, 1, 1, 2, 3])), draw(st.integers(-5, 5))
    at = i * scale + shift
    inside = all(binary(BinaryOp.GE, at, 0), binary(BinaryOp.LT, at, buffer.shape[0]))
    read = Load(buffer, (at,), buffer.dtype)
    return select(inside, read, otherwise) if draw(st.booleans()) else select(~inside, otherwise, read)


@st.composite
def vectorized(draw: st.DrawFn) -> Function:
    """Each iteration stores to a place of its own what any expression of the inputs and both loop variables gives."""
    extent, lanes = draw(st.integers(1, 37)), draw(st.sampled_from([2, 4, 8, 16]))
    stride, rows = draw(st.sampled_from([1, 1, 1, 2, -1])), 3
    dtype = draw(st.sampled_from(["float32", "int64", "float64", "int32", "int8"]))
    x, n, w = argument("X", 3, 4), argument("N", 5, dtype="int64"), argument("W", 11, dtype=dtype)
    y = argument("Y", rows, extent * 2 + 3, dtype=dtype)
    shift = extent if stride < 0 else draw(st.integers(0, 2))

    def row(j: Var) -> Stmt:
        length: Expr | int = extent if draw(st.booleans()) else minimum(j * 5 + draw(st.integers(0, 9)), extent)

        def body(i: Var) -> Stmt:
            value = draw(values(dtype, (x, n, w), (i, j), 2))
            if draw(st.booleans()):
                value = binary(BinaryOp.ADD, value, draw(guarded(w, i, const(2, dtype))))
            stmt: Stmt = store(y, (j, i * stride + shift), value)
            return If(draw(conditions((i, j), 1)), stmt) if draw(st.integers(0, 3)) == 0 else stmt

        return loop("i", length, body, LoopKind.VECTORIZED, lanes)

    kind = draw(st.sampled_from([LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED]))
    return Function("lanes", (x, n, w, y), 1, loop("j", rows, row, kind))


@SETTINGS
@given(vectorized(), st.integers(0, 1 << 30), st.sampled_from(TARGETS))
def test_vector_code(function: Function, seed: int, target: Target) -> None:
    check(function, seed, target)


@st.composite
def tiles(draw: st.DrawFn) -> Function:
    """Matrix products with register tiles, ragged edges and a padded read of A."""
    m, n, k = draw(st.integers(1, 13)), draw(st.integers(1, 40)), draw(st.integers(1, 9))
    rows, columns = draw(st.integers(1, 4)), draw(st.sampled_from([3, 8, 16, 20, 32]))
    lanes, scope = draw(st.sampled_from([4, 8, 16, 32])), draw(st.sampled_from([Scope.REGISTER, Scope.LOCAL]))
    a, b, c = argument("A", m, k), argument("B", k, n), argument("C", m, n)
    acc = Buffer("acc", (rows, columns), "float32", scope)

    def tile(i0: Var, j0: Var) -> Stmt:
        width = minimum(columns, n - j0 * columns)

        def over(width: Expr | int, make: Callable[[Var, Var], Stmt]) -> Stmt:
            def row(i: Var) -> Stmt:
                return loop("j", width, lambda j: make(i, j), LoopKind.VECTORIZED, lanes)

            return loop("i", rows, row, LoopKind.UNROLLED)

        def read(i: Expr, r: Var) -> Expr:
            return select(binary(BinaryOp.LT, i, m), Load(a, (i, r), "float32"), const(0.0, "float32"))

        def update(r: Var) -> Stmt:
            return over(width, lambda i, j: store(acc, (i, j), _madd(acc, i, j, read(i0 * rows + i, r), b, r, j0 * columns + j)))

        def out(i: Var, j: Var) -> Stmt:
            at = i0 * rows + i
            return If(binary(BinaryOp.LT, at, m), store(c, (at, j0 * columns + j), Load(acc, (i, j), "float32")))

        clear = over(columns, lambda i, j: store(acc, (i, j), const(0.0, "float32")))
        return Alloc(acc, block(clear, loop("r", k, update), over(width, out)))

    body = loop("i0", -(-m // rows), lambda i0: loop("j0", -(-n // columns), lambda j0: tile(i0, j0)), LoopKind.PARALLEL)
    return Function("tiles", (a, b, c), 1, body)


def _madd(acc: Buffer, i: Var, j: Var, x: Expr, b: Buffer, r: Var, column: Expr) -> Expr:
    product = binary(BinaryOp.MUL, x, Load(b, (r, column), "float32"))
    return binary(BinaryOp.ADD, Load(acc, (i, j), "float32"), product)


@SETTINGS
@given(tiles(), st.integers(0, 1 << 30), st.sampled_from(TARGETS))
def test_register_tiles(function: Function, seed: int, target: Target) -> None:
    check(function, seed, target)
