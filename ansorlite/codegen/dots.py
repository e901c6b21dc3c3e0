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
    """One LLVM intrinsic that computes a dot product in every lane; its operands are vectors of pieces.

    Attributes:
        op: what it computes.
        feature: the feature of LLVM's that it needs.
        lanes: 32-bit lanes; 0: as many as a register of SVE's has.
        name: of the intrinsic.
        adds: whether it adds to an accumulator, its first operand.
        pairs: an intrinsic that comes first and sums pairs of products of bytes, in halves; ``name`` then sums pairs of these,
            multiplied by ones.
    """

    op: BinaryOp
    feature: str
    lanes: int
    name: str
    adds: bool = True
    pairs: str = ""


def _x86(op: BinaryOp, feature: str, name: str, *lanes: int) -> tuple[Instruction, ...]:
    return tuple(Instruction(op, feature, n, f"llvm.x86.{name}.{32 * n}") for n in lanes)


def _neon(op: BinaryOp, feature: str, name: str) -> tuple[Instruction, ...]:
    return tuple(Instruction(op, feature, n, f"llvm.aarch64.neon.{name}.v{n}i32.v{4 * n}i8") for n in (4, 2))


def _sve(op: BinaryOp, feature: str, name: str) -> Instruction:
    return Instruction(op, feature, 0, f"llvm.aarch64.sve.{name}.nxv4i32")


#: The first one of a dot product that has the lanes wanted, and whose feature is there, is taken.
INSTRUCTIONS: Final[tuple[Instruction, ...]] = (
    *_x86(BinaryOp.DOT_U8S8, "avx512vnni", "avx512.vpdpbusd", 16, 8, 4),
    *_x86(BinaryOp.DOT_U8S8, "avxvnni", "avx512.vpdpbusd", 8, 4),
    *_x86(BinaryOp.DOT_S16S16, "avx512vnni", "avx512.vpdpwssd", 16, 8, 4),
    *_x86(BinaryOp.DOT_S16S16, "avxvnni", "avx512.vpdpwssd", 8, 4),
    Instruction(BinaryOp.DOT_U8S7, "avx512bw", 16, "llvm.x86.avx512.pmaddw.d.512", False, "llvm.x86.avx512.pmaddubs.w.512"),
    Instruction(BinaryOp.DOT_U8S7, "avx2", 8, "llvm.x86.avx2.pmadd.wd", False, "llvm.x86.avx2.pmadd.ub.sw"),
    Instruction(BinaryOp.DOT_U8S7, "ssse3", 4, "llvm.x86.sse2.pmadd.wd", False, "llvm.x86.ssse3.pmadd.ub.sw.128"),
    Instruction(BinaryOp.DOT_S16S16, "avx512bw", 16, "llvm.x86.avx512.pmaddw.d.512", adds=False),
    Instruction(BinaryOp.DOT_S16S16, "avx2", 8, "llvm.x86.avx2.pmadd.wd", adds=False),
    Instruction(BinaryOp.DOT_S16S16, "sse2", 4, "llvm.x86.sse2.pmadd.wd", adds=False),
    *_x86(BinaryOp.DOT_S8S8, "avxvnniint8", "avx2.vpdpbssd", 8, 4),
    *_x86(BinaryOp.DOT_U8U8, "avxvnniint8", "avx2.vpdpbuud", 8, 4),
    *_neon(BinaryOp.DOT_S8S8, "dotprod", "sdot"),
    *_neon(BinaryOp.DOT_U8U8, "dotprod", "udot"),
    *_neon(BinaryOp.DOT_U8S8, "i8mm", "usdot"),
    _sve(BinaryOp.DOT_S8S8, "sve", "sdot"),
    _sve(BinaryOp.DOT_U8U8, "sve", "udot"),
    _sve(BinaryOp.DOT_U8S8, "i8mm", "usdot"),
)


def instruction(target: Target, op: BinaryOp, lanes: int) -> Instruction | None:
    """The instruction for ``op`` in ``lanes`` lanes, if the target has one."""
    features = set(target.features.split(","))
    scalable = None if target.sve_bytes is None else target.sve_bytes // 4
    fitting = (i for i in INSTRUCTIONS if i.op is op and (i.lanes or scalable) == lanes and f"+{i.feature}" in features)
    return next(fitting, None)


def dot(op: BinaryOp, b: Builder, dtype: str, lanes: int, x: str, y: str) -> str:
    """The dot product in every lane."""
    del dtype
    found = instruction(b.module.target, op, lanes)
    if found is None:
        return _multiplied(b, op, lanes, x, y)
    zero = types.splat("0", "i32", lanes)
    return _call(b, found, lanes, zero, x, y)


def dot_add(op: BinaryOp, b: Builder, lanes: int, total: str, x: str, y: str) -> str:
    """The dot product in every lane, added to ``total``."""
    found = instruction(b.module.target, op, lanes)
    if found is not None and found.adds:
        return _call(b, found, lanes, total, x, y)
    return b.op(f"add {types.vector('i32', lanes)} {total}, {dot(op, b, 'int32', lanes, x, y)}")


def _call(b: Builder, how: Instruction, lanes: int, total: str, x: str, y: str) -> str:
    words = types.vector("i32", lanes)
    pieces, _ = DOTS[how.op]
    element, count = f"i{pieces.bits}", lanes * pieces.count
    operand = types.vector(element, count)
    operands = [(operand, b.op(f"bitcast {words} {word} to {operand}")) for word in (x, y)]
    if not how.lanes:
        given = [_scalable(b, "i32", lanes, total), *(_scalable(b, element, count, bytes_) for _, bytes_ in operands)]
        return b.call(words, f"llvm.vector.extract.v{lanes}i32.nxv4i32", (_WORDS, b.call(_WORDS, how.name, *given)), ("i64", "0"))
    if how.pairs:
        halves = types.vector("i16", 2 * lanes)
        operands = [(halves, b.call(halves, how.pairs, *operands)), (halves, types.splat("1", "i16", 2 * lanes))]
    return b.call(words, how.name, *([(words, total)] if how.adds else []), *operands)


#: A register of SVE's as LLVM's intrinsics of it have it, as one of words.
_WORDS: Final = "<vscale x 4 x i32>"


def _scalable(b: Builder, element: str, lanes: int, x: str) -> tuple[str, str]:
    """A vector as long as SVE's registers, as a type that does not say how long they are: nothing is done for it."""
    count = 128 // int(element[1:])
    kind = f"<vscale x {count} x {element}>"
    name = f"llvm.vector.insert.nxv{count}{element}.v{lanes}{element}"
    return kind, b.call(kind, name, (kind, "poison"), (types.vector(element, lanes), x), ("i64", "0"))


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
