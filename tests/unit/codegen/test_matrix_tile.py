"""Register tiles of dot products on matrix units (Intel's AMX), run here with functions in place of its instructions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.cache.disk import NoCache
from ansorlite.codegen import assembly
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Alloc, Buffer, For, Function, LoopKind, Role, Scope, Stmt, Store, block, index
from ansorlite.platforms import build
from ansorlite.sketch import lower
from ansorlite.target import Target, resolve
from ansorlite.te import dtypes
from ansorlite.te.evaluate import evaluate
from ansorlite.te.expr import Binary, Var, const
from ansorlite.te.ops import DOTS, BinaryOp
from tests import workloads
from tests.contracts.test_right_numbers import compiled
from tests.running import called, run_compiled
from tests.strategies import arrays_for, assert_close
from tests.unit.loops.build import argument, load, store

SAPPHIRE = resolve("sapphirerapids")
LANES = 16


def product(
    op: BinaryOp, shape: tuple[int, int, int], *, swapped: bool = False, images: int = 1, across: bool = False
) -> Function:
    """``c[h, i, j] = sum over k of a[h, i, k] * b[k, j]`` in words, in one register tile.

    Args:
        shape: rows, columns, words.
        swapped: the words of the columns are the first operand of the dot product.
        images: a loop around the rows.
        across: the words of a row lie beneath each other.
    """
    rows, columns, words = shape
    a = argument("a", images, *((words, rows) if across else (rows, words)), dtype="int32")
    b = argument("b", words, columns, dtype="int32")
    sums = DOTS[op][0].sums
    c = argument("c", images, rows, columns, dtype=sums)
    tile = Buffer("tile", (images, rows, columns), sums, Scope.REGISTER)
    k = Var("k")

    def nest(body: Callable[[Var, Var, Var], Store]) -> Stmt:
        h, i, j = Var("h"), Var("i"), Var("j")
        lane = For(j, index(columns), LoopKind.VECTORIZED, body(h, i, j), LANES)
        return For(h, index(images), LoopKind.UNROLLED, For(i, index(rows), LoopKind.UNROLLED, lane))

    def update(h: Var, i: Var, j: Var) -> Store:
        factors = load(a, h, *((k, i) if across else (i, k))), load(b, k, j)
        dot = Binary(op, *(reversed(factors) if swapped else factors), sums)
        return Store(tile, (h, i, j), load(tile, h, i, j) + dot, "c", Role.UPDATE)

    body = block(
        nest(lambda h, i, j: store(tile, (h, i, j), const(1, sums))),
        For(k, index(words), LoopKind.SERIAL, nest(update)),
        nest(lambda h, i, j: store(c, (h, i, j), load(tile, h, i, j))),
    )
    return Function("product", (a, b, c), 1, Alloc(tile, body))


def instructions(function: Function, target: Target = SAPPHIRE) -> list[str]:
    """The products of tiles in the machine code."""
    return re.findall(r"\b(tdp\w+)", assembly(build(function, target), target))


CASES = [
    (BinaryOp.DOT_U8S8, False, "tdpbusd"),
    (BinaryOp.DOT_U8S8, True, "tdpbsud"),
    (BinaryOp.DOT_U8S7, False, "tdpbusd"),
    (BinaryOp.DOT_S8S8, False, "tdpbssd"),
    (BinaryOp.DOT_U8U8, True, "tdpbuud"),
    (BinaryOp.DOT_BF16, False, "tdpbf16ps"),
    (BinaryOp.DOT_BF16, True, "tdpbf16ps"),
]
#: Rows, columns, words: of one register each; of more in each direction; of six in a row; of three in a column.
SHAPES = [(16, 16, 16), (18, 20, 36), (8, 96, 16), (39, 9, 48), (5, 33, 15)]


def words_of(op: BinaryOp, shape: tuple[int, ...], side: int, rng: np.random.Generator) -> np.ndarray:
    """Words of whatever pieces the operand of ``op`` has."""
    pieces = DOTS[op][side]
    if pieces.floats:
        numbers = rng.standard_normal((*shape, 2)).astype(dtypes.NUMPY["bfloat16"])
        return np.ascontiguousarray(numbers).view(np.int32)[..., 0]
    least, greatest = pieces.range
    dtype = np.int8 if least < 0 else np.uint8
    return rng.integers(least, greatest + 1, (*shape, 4)).astype(dtype).view(np.int32)[..., 0]


def check(function: Function, op: BinaryOp, swapped: bool) -> None:
    rng = np.random.default_rng(3)
    a, b, c = function.params
    given = [words_of(op, p.shape, side, rng) for p, side in ((a, int(swapped)), (b, int(not swapped)))]
    expected = np.empty(c.shape, dtypes.NUMPY[c.dtype])
    interpret(function, [*given, expected])
    found = called(function, SAPPHIRE, *given)
    if DOTS[op][0].floats:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize(("op", "swapped", "name"), CASES)
def test_products_of_tiles(op: BinaryOp, swapped: bool, name: str, shape: tuple[int, int, int]) -> None:
    function = product(op, shape, swapped=swapped)
    assert set(instructions(function)) == {name}
    check(function, op, swapped)


def test_loops_around_the_rows() -> None:
    function = product(BinaryOp.DOT_U8S8, (8, 16, 40), images=3)
    assert set(instructions(function)) == {"tdpbusd"}
    check(function, BinaryOp.DOT_U8S8, swapped=False)


def summed(start: str, *, streamed: bool = False, read_again: bool = False, set_twice: bool = False) -> Function:
    """The product of :func:`product`, whose sums begin as ``start`` says, in 32 rows of 24 columns of a larger ``c``.

    Args:
        start: "zero", "one", or "c": what is there.
        read_again: sums are read once more after they were copied to ``c``.
        set_twice: before they begin they are set to something else.
    """
    rows, columns, words = 32, 24, 16
    a, b = argument("a", rows, words, dtype="int32"), argument("b", words, columns, dtype="int32")
    c = argument("c", rows, 40, dtype="int32")
    tile, k = Buffer("tile", (rows, columns), "int32", Scope.REGISTER), Var("k")

    def nest(body: Callable[[Var, Var], Store]) -> Stmt:
        i, j = Var("i"), Var("j")
        return For(i, index(rows), LoopKind.UNROLLED, For(j, index(columns), LoopKind.VECTORIZED, body(i, j), LANES))

    def begin(i: Var, j: Var) -> Store:
        value = load(c, i, j + 8) if start == "c" else const(int(start == "one"), "int32")
        return store(tile, (i, j), value)

    def update(i: Var, j: Var) -> Store:
        dot = Binary(BinaryOp.DOT_U8S8, load(a, i, k), load(b, k, j), "int32")
        return Store(tile, (i, j), load(tile, i, j) + dot, "c", Role.UPDATE)

    def end(i: Var, j: Var) -> Store:
        return replace(store(c, (i, j + 8), load(tile, i, j)), streamed=streamed)

    again = [nest(lambda i, j: store(c, (i, j), load(tile, i, j)))] if read_again else []
    earlier = [nest(lambda i, j: store(tile, (i, j), const(7, "int32")))] if set_twice else []
    body = block(*earlier, nest(begin), For(k, index(words), LoopKind.SERIAL, nest(update)), nest(end), *again)
    return Function("summed", (a, b, c), 1, Alloc(tile, body))


@pytest.mark.parametrize(
    ("function", "zeroed", "loaded", "direct"),
    [
        (summed("zero"), 4, 0, True),
        (summed("one"), 0, 4, False),
        (summed("c"), 0, 4, True),
        (summed("zero", streamed=True), 4, 0, False),
        (summed("zero", read_again=True), 4, 0, False),
        (summed("zero", set_twice=True), 0, 4, False),
    ],
    ids=["zero", "one", "c", "streamed", "read_again", "set_twice"],
)
def test_sums_are_moved_by_the_tiles(function: Function, zeroed: int, loaded: int, direct: bool) -> None:
    """Sums of four registers begin at zero or in memory, and end there, without a detour by way of vectors."""
    text = build(function, SAPPHIRE).llvm
    assert text.count("call void @llvm.x86.tilezero") == zeroed
    assert text.count("call void @llvm.x86.tileloadd64") == loaded + 4  # two of each factor
    assert ("store <" not in text) == direct
    rng = np.random.default_rng(5)
    a, b, c = function.params
    given = [words_of(BinaryOp.DOT_U8S8, p.shape, side, rng) for p, side in ((a, 0), (b, 1))]
    before = rng.integers(-99, 99, c.shape).astype(np.int32)
    expected, found = before.copy(), before.copy()
    interpret(function, [*given, expected])
    run_compiled(build(function, SAPPHIRE), function, SAPPHIRE, *given, found)
    np.testing.assert_array_equal(found, expected)


def over_taps(*kinds: LoopKind) -> Function:
    """Sums of 32 rows of 16 columns over 16 words and three taps in each of two directions, as a convolution has them.

    Args:
        kinds: of the loops over the taps.
    """
    rows, columns, words, taps = 32, 16, 16, 3
    a = argument("a", taps, rows + taps, words, dtype="int32")
    b = argument("b", taps, taps, words, columns, dtype="int32")
    c = argument("c", rows, columns, dtype="int32")
    tile = Buffer("tile", (rows, columns), "int32", Scope.REGISTER)
    u, v, k = Var("u"), Var("v"), Var("k")

    def nest(body: Callable[[Var, Var], Store]) -> Stmt:
        i, j = Var("i"), Var("j")
        return For(i, index(rows), LoopKind.UNROLLED, For(j, index(columns), LoopKind.VECTORIZED, body(i, j), LANES))

    def update(i: Var, j: Var) -> Store:
        dot = Binary(BinaryOp.DOT_U8S8, load(a, u, i + v, k), load(b, u, v, k, j), "int32")
        return Store(tile, (i, j), load(tile, i, j) + dot, "c", Role.UPDATE)

    body: Stmt = For(k, index(words), LoopKind.SERIAL, nest(update))
    for var, kind in zip((v, u), reversed(kinds), strict=True):
        body = For(var, index(taps), kind, body)
    begin = nest(lambda i, j: store(tile, (i, j), const(0, "int32")))
    end = nest(lambda i, j: store(c, (i, j), load(tile, i, j)))
    return Function("over_taps", (a, b, c), 1, Alloc(tile, block(begin, body, end)))


@pytest.mark.parametrize("kinds", [(LoopKind.SERIAL, LoopKind.SERIAL), (LoopKind.SERIAL, LoopKind.UNROLLED)])
def test_sums_stay_in_registers_over_all_loops_of_a_reduction(kinds: tuple[LoopKind, ...]) -> None:
    function = over_taps(*kinds)
    text = build(function, SAPPHIRE).llvm
    assert text.count("call void @llvm.x86.tilezero") == text.count("call void @llvm.x86.tilestored64") == 2
    assert text.count("call void @llvm.x86.tileloadd64") == 3  # two of one factor, one of the other
    assert "store <" not in text
    check(function, BinaryOp.DOT_U8S8, swapped=False)


@pytest.mark.parametrize(
    "function",
    [
        product(BinaryOp.DOT_U8S8, (2, 16, 16)),  # the vectors of so few rows are as fast
        product(BinaryOp.DOT_U8S8, (16, 16, 37)),  # no equal pieces
        product(BinaryOp.DOT_U8S8, (48, 48, 16)),  # nine registers of accumulators
        product(BinaryOp.DOT_U8S8, (16, 16, 16), across=True),  # a row's words are apart
        product(BinaryOp.DOT_S16S16, (16, 16, 16)),  # no such instruction
    ],
)
def test_what_tiles_do_not_fit_is_done_by_vectors(function: Function) -> None:
    assert not instructions(function)


def test_processors_without_them_use_vectors() -> None:
    assert not instructions(product(BinaryOp.DOT_U8S8, (16, 16, 16)), resolve("icelake-server"))


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (al.Task(workloads.quantised_matmul(32, 96, 128), replace(SAPPHIRE, threads=2)), "tdpbusd"),
        (al.Task(workloads.widened_matmul(32, 96, 128), replace(SAPPHIRE, threads=1)), "tdpbf16ps"),
        (al.Task(workloads.widened_matmul(64, 96, 100, turned=True), replace(SAPPHIRE, threads=1)), "tdpbf16ps"),
        (al.Task(workloads.widened_conv2d(64, 6, 16, 48), replace(SAPPHIRE, threads=1)), "tdpbf16ps"),
    ],
)
def test_default_programs_of_products(task: al.Task, name: str) -> None:
    with Programs(None, cache=NoCache()) as programs:
        function = lower(task, programs.candidate(task))
    assert set(instructions(function, task.target)) == {name}
    inputs = arrays_for(task.dag, np.random.default_rng(5))
    assert_close(task.dag, compiled(task.dag, function, inputs, task.target), evaluate(task.dag, inputs))
