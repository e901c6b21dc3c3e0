"""Dot products of words: their numbers on this machine, and which instruction each kind of machine is given."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite.codegen import assembly
from ansorlite.codegen.dots import INSTRUCTIONS, instruction
from ansorlite.loops.nodes import Buffer, For, Function, Load, LoopKind, Scope, Store, index
from ansorlite.platforms import build
from ansorlite.target import NAMED, Target, host
from ansorlite.te import dtypes
from ansorlite.te.expr import Expr, Var, binary
from ansorlite.te.ops import BINARY, DOTS, BinaryOp
from ansorlite.te.words import Pieces
from tests.running import called
from tests.targets import WIDE

HOST = host(threads=1)
INTEGERS: Final = [op for op, (pieces, _) in DOTS.items() if not pieces.floats]
dots = pytest.mark.parametrize("op", INTEGERS, ids=lambda op: op.name)


def words(pieces: Pieces, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random ones, with the extremes of the pieces side by side, alone, and in turns."""
    least, greatest = pieces.range
    random = rng.integers(least, greatest + 1, (n, pieces.count))
    random[:4] = np.array([[least], [greatest], [0], [1]])
    random[4:6, ::2], random[6:8, 1::2] = [[least], [greatest]], [[least], [greatest]]
    return random.astype(pieces.dtype).view(np.int32).reshape(n)


def function(op: BinaryOp, n: int, lanes: int, uniform: bool, adds: bool) -> Function:
    """``Z = dot(X, Y)`` over vectors; ``uniform`` takes one word of X for all, ``adds`` adds to what is in Z's place of A."""
    sums = DOTS[op][0].sums
    x, y = (Buffer(name, (n,), "int32", Scope.ARGUMENT) for name in "XY")
    a, z = (Buffer(name, (n,), sums, Scope.ARGUMENT) for name in "AZ")
    i = Var("i")
    at: Expr = index(0) if uniform else i
    value = binary(op, Load(x, (at,), "int32"), Load(y, (i,), "int32"))
    if adds:
        value = Load(a, (i,), sums) + value
    return Function("dots", (x, y, a, z), 1, For(i, index(n), LoopKind.VECTORIZED, Store(z, (i,), value), lanes))


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@dots
def test_compiled_dot_products_are_exact(op: BinaryOp, lanes: int, uniform: bool, adds: bool) -> None:
    check_integers(op, lanes, uniform, adds, HOST)


def check_integers(op: BinaryOp, lanes: int, uniform: bool, adds: bool, target: Target) -> None:
    n = 37
    rng = np.random.default_rng(lanes)
    x, y = (words(pieces, n, rng) for pieces in DOTS[op])
    y[:8] = rng.permutation(y[:8])
    a = rng.integers(-(1 << 31), 1 << 31, n, dtype=np.int64).astype(np.int32)
    program = function(op, n, lanes, uniform, adds)
    found = called(program, target, x, y, a)
    parts = [np.ascontiguousarray(w).view(piece.dtype).reshape(len(w), -1) for w, piece in zip((x, y), DOTS[op], strict=True)]
    if uniform:
        parts[0] = parts[0][:1]
    products = (parts[0].astype(np.int64) * parts[1]).sum(axis=1)
    np.testing.assert_array_equal(found, (products + a if adds else products).astype(np.int32))
    meaning = BINARY[op].numpy(x[:1] if uniform else x, y)
    np.testing.assert_array_equal(found, (a + meaning) if adds else meaning)


ARM: Final = replace(WIDE, triple="aarch64-unknown-linux-gnu", cpu="generic", vector_bytes=16)
#: (machine, dot product, lanes) -> mnemonic.
MNEMONICS: Final = [
    (replace(WIDE, cpu="x86-64", features="+sse2"), BinaryOp.DOT_S16S16, 4, "pmaddwd"),
    (replace(WIDE, cpu="x86-64-v3", features="+sse2,+avx2"), BinaryOp.DOT_S16S16, 8, "vpmaddwd"),
    (replace(WIDE, features="+sse2,+avx2,+avx512bw"), BinaryOp.DOT_S16S16, 16, "vpmaddwd"),
    (replace(WIDE, cpu="x86-64-v2", features="+sse2,+ssse3"), BinaryOp.DOT_U8S7, 4, "pmaddubsw"),
    (replace(WIDE, cpu="x86-64-v3", features="+sse2,+ssse3,+avx2"), BinaryOp.DOT_U8S7, 8, "vpmaddubsw"),
    (replace(WIDE, features="+sse2,+ssse3,+avx2,+avx512bw"), BinaryOp.DOT_U8S7, 16, "vpmaddubsw"),
    (replace(WIDE, cpu="cascadelake", features="+sse2,+avx512vnni"), BinaryOp.DOT_U8S8, 16, "vpdpbusd"),
    (replace(WIDE, cpu="cascadelake", features="+sse2,+avx512vnni"), BinaryOp.DOT_U8S8, 4, "vpdpbusd"),
    (replace(WIDE, cpu="cascadelake", features="+sse2,+avx512vnni"), BinaryOp.DOT_S16S16, 16, "vpdpwssd"),
    (replace(WIDE, cpu="alderlake", features="+sse2,+avxvnni"), BinaryOp.DOT_U8S8, 8, "vpdpbusd"),
    (replace(WIDE, cpu="alderlake", features="+sse2,+avxvnni"), BinaryOp.DOT_S16S16, 8, "vpdpwssd"),
    (replace(WIDE, cpu="alderlake", features="+avxvnniint8"), BinaryOp.DOT_S8S8, 8, "vpdpbssd"),
    (replace(WIDE, cpu="alderlake", features="+avxvnniint8"), BinaryOp.DOT_U8U8, 4, "vpdpbuud"),
    (replace(ARM, features="+dotprod"), BinaryOp.DOT_S8S8, 4, "sdot"),
    (replace(ARM, features="+dotprod"), BinaryOp.DOT_U8U8, 4, "udot"),
    (replace(ARM, features="+i8mm"), BinaryOp.DOT_U8S8, 4, "usdot"),
    *((NAMED["x86-64-v4+bf16"], BinaryOp.DOT_BF16, lanes, "vdpbf16ps") for lanes in (1, 2, 4, 8, 16)),
    *((NAMED["aarch64+bf16"], BinaryOp.DOT_BF16, lanes, "bfdot") for lanes in (1, 2, 4)),
    (replace(ARM, features="+sve", vector_bytes=32), BinaryOp.DOT_S8S8, 8, "sdot"),
    (replace(ARM, features="+sve", vector_bytes=64), BinaryOp.DOT_U8U8, 16, "udot"),
    (replace(ARM, features="+sve,+i8mm", vector_bytes=32), BinaryOp.DOT_U8S8, 8, "usdot"),
    (replace(ARM, features="+sve,+bf16", vector_bytes=32), BinaryOp.DOT_BF16, 8, "bfdot"),
]


@pytest.mark.parametrize(("target", "op", "lanes"), [row[:3] for row in MNEMONICS if row[1] in INTEGERS])
def test_every_instruction_gives_the_numbers(target: Target, op: BinaryOp, lanes: int) -> None:
    """Or what stands in for it, where this processor has none; or qemu's."""
    for adds in (False, True):
        check_integers(op, lanes, False, adds, target)


#: A processor that may lack the instruction, and two that have it.
FLOATS: Final = [HOST, *(replace(NAMED[name], threads=1) for name in ("x86-64-v4+bf16", "aarch64+bf16", "neoverse-v1"))]


@pytest.mark.parametrize("target", FLOATS, ids=lambda target: target.cpu)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_dot_products_of_bfloat16(lanes: int, target: Target) -> None:
    """Numbers near and far from each other, tiny, huge and special ones; within a unit in the last place of each addition."""
    n = 37
    rng = np.random.default_rng(lanes)
    x, y = (np.exp(rng.uniform(-30, 30, (n, 2))) * rng.choice([-1, 1], (n, 2)) for _ in range(2))
    special = [0.0, -0.0, 1e-39, -1e-40, np.inf, 3e38]
    x[:6, 0], x[6:12, 1], y[3:7, 0] = special, special, 3e38
    a = rng.standard_normal(n).astype(np.float32)
    pieces = [values.astype(dtypes.NUMPY["bfloat16"]) for values in (x, y)]
    given = [values.view(np.int32).reshape(n) for values in pieces]
    wide = [values.astype(np.float64) for values in pieces]
    products = np.prod([np.where(abs(values) < 2.0**-126, 0, values) for values in wide], axis=0)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(BINARY[BinaryOp.DOT_BF16].numpy(*given), products.sum(axis=1).astype(np.float32))
        for adds in (False, True):
            found = called(function(BinaryOp.DOT_BF16, n, lanes, False, adds), target, *given, a)
            exact, magnitude = (products.sum(axis=1) + adds * a, abs(products).sum(axis=1) + adds * abs(a))
            huge = magnitude > 3.4e38
            np.testing.assert_array_equal(found[huge], exact[huge].astype(np.float32))
            assert (abs(found - exact) <= (1 + adds) * 2.0**-23 * magnitude)[~huge].all()


@pytest.mark.parametrize(("target", "op", "lanes", "mnemonic"), MNEMONICS)
def test_a_machine_that_has_the_instruction_is_given_it(target: Target, op: BinaryOp, lanes: int, mnemonic: str) -> None:
    text = assembly(build(function(op, 4 * lanes, lanes, True, True), target), target)
    assert f"\t{mnemonic}\t" in text
    assert not re.search(r"\t\w*mul(?!hi)", text)


def test_what_a_machine_prefers_it_has() -> None:
    for target in {target for target, *_ in MNEMONICS}:
        for op in target.dots:
            widest = target.lanes("int32")
            while widest > 1 and instruction(target, op, widest) is None:
                widest //= 2
            assert instruction(target, op, widest) is not None


def test_every_instruction_is_tried() -> None:
    tried = {instruction(target, op, lanes) for target, op, lanes, _ in MNEMONICS}
    assert {(i.op, i.feature, i.lanes == 0) for i in INSTRUCTIONS} == {
        (i.op, i.feature, i.lanes == 0) for i in tried if i is not None
    }


def test_a_machine_without_any_multiplies() -> None:
    bare = replace(WIDE, features="")
    assert bare.dots == ()
    assert instruction(bare, BinaryOp.DOT_U8S8, 16) is None
