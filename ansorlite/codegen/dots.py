"""Dot products of words: the instruction that a target has for one, or the multiplications that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.target import Target
from ansorlite.te.ops import DOTS, BinaryOp


@dataclass(frozen=True)
class Instruction:
    """One LLVM intrinsic that computes a dot product in every lane.

    Attributes:
        op: what it computes.
        feature: the feature of LLVM's that it needs.
        lanes: 32-bit lanes.
        name: of the intrinsic.
        adds: whether it adds to an accumulator, its first operand.
        pieces: whether its operands are vectors of pieces, not of words.
        swapped: whether the second operand comes first.
    """

    op: BinaryOp
    feature: str
    lanes: int
    name: str
    adds: bool = True
    pieces: bool = True
    swapped: bool = False


def _x86(op: BinaryOp, features: tuple[str, str, str], name: str) -> tuple[Instruction, ...]:
    widths = zip((16, 8, 4), (512, 256, 128), features, strict=True)
    return tuple(Instruction(op, feature, lanes, f"llvm.x86.{name}.{bits}") for lanes, bits, feature in widths)


def _neon(op: BinaryOp, feature: str, name: str) -> tuple[Instruction, ...]:
    return tuple(Instruction(op, feature, lanes, f"llvm.aarch64.neon.{name}.v{lanes}i32.v{4 * lanes}i8") for lanes in (4, 2))


#: The first one of a dot product that has the lanes wanted, and whose feature is there, is taken.
INSTRUCTIONS: Final[tuple[Instruction, ...]] = (
    *_x86(BinaryOp.DOT_U8S8, ("avx512vnni", "avx512vnni", "avx512vnni"), "avx512.vpdpbusd"),
    *_x86(BinaryOp.DOT_U8S8, ("avx512vnni", "avxvnni", "avxvnni"), "avx512.vpdpbusd"),
    *_x86(BinaryOp.DOT_S16S16, ("avx512vnni", "avx512vnni", "avx512vnni"), "avx512.vpdpwssd"),
    *_x86(BinaryOp.DOT_S16S16, ("avx512vnni", "avxvnni", "avxvnni"), "avx512.vpdpwssd"),
    Instruction(BinaryOp.DOT_S16S16, "avx512bw", 16, "llvm.x86.avx512.pmaddw.d.512", adds=False),
    Instruction(BinaryOp.DOT_S16S16, "avx2", 8, "llvm.x86.avx2.pmadd.wd", adds=False),
    Instruction(BinaryOp.DOT_S16S16, "sse2", 4, "llvm.x86.sse2.pmadd.wd", adds=False),
    *(Instruction(BinaryOp.DOT_S8S8, "avxvnniint8", n, f"llvm.x86.avx2.vpdpbssd.{32 * n}") for n in (8, 4)),
    *(Instruction(BinaryOp.DOT_U8U8, "avxvnniint8", n, f"llvm.x86.avx2.vpdpbuud.{32 * n}") for n in (8, 4)),
    *_neon(BinaryOp.DOT_S8S8, "dotprod", "sdot"),
    *_neon(BinaryOp.DOT_U8U8, "dotprod", "udot"),
    *_neon(BinaryOp.DOT_U8S8, "i8mm", "usdot"),
)


def instruction(target: Target, op: BinaryOp, lanes: int) -> Instruction | None:
    """The instruction for ``op`` in ``lanes`` lanes, if the target has one."""
    features = set(target.features.split(","))
    fitting = (i for i in INSTRUCTIONS if i.op is op and i.lanes == lanes and f"+{i.feature}" in features)
    return next(fitting, None)


def dot(op: BinaryOp, b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """The dot product in every lane."""
    del dtype
    found = instruction(b.module.target, op, lanes)
    if found is None:
        return _multiplied(b, op, lanes, x, y)
    zero = types.splat("0", "i32", lanes)
    return _call(b, found, zero, x, y)


def dot_add(op: BinaryOp, b: Builder, lanes: int, total: str, x: str, y: str) -> str:
    """The dot product in every lane, added to ``total``."""
    found = instruction(b.module.target, op, lanes)
    if found is not None and found.adds:
        return _call(b, found, total, x, y)
    return b.op(f"add {types.vector('i32', lanes)} {total}, {dot(op, b, 'int32', lanes, x, y)}")


def _call(b: Builder, how: Instruction, total: str, x: str, y: str) -> str:
    words = types.vector("i32", how.lanes)
    pieces, _ = DOTS[how.op]
    operand = types.vector(f"i{pieces.bits}", how.lanes * pieces.count) if how.pieces else words
    cast = [b.op(f"bitcast {words} {z} to {operand}") if how.pieces else z for z in (x, y)]
    operands = [(operand, z) for z in (reversed(cast) if how.swapped else cast)]
    return b.call(words, how.name, *([(words, total)] if how.adds else []), *operands)


def _multiplied(b: Builder, op: BinaryOp, lanes: int, x: str, y: str) -> str:
    """Piece by piece: each is shifted to the top of its word and back down."""
    kind = types.vector("i32", lanes)
    result = ""
    for number in range(DOTS[op][0].count):
        factors = []
        for word, pieces in zip((x, y), DOTS[op], strict=True):
            up, down = (types.splat(str(n), "i32", lanes) for n in (32 - (number + 1) * pieces.bits, 32 - pieces.bits))
            top = b.op(f"shl {kind} {word}, {up}")
            factors.append(b.op(f"{'ashr' if pieces.signed else 'lshr'} {kind} {top}, {down}"))
        product = b.op(f"mul {kind} {factors[0]}, {factors[1]}")
        result = b.op(f"add {kind} {result}, {product}") if result else product
    return result
