"""Dot products of words: the instruction that a target has for one, or the multiplications that it stands for.

Those of integers are exact. ``te.words`` says what two bfloat16 give; where that is added to a float32 sum, instructions differ
in the last places, as orders of addition do. They do not ask for a rounding mode, take subnormal bfloat16 for 0, and give 0 for
what is below 2^-126 in magnitude:

* ``vdpbf16ps`` (AVX512-BF16) is two multiply-adds one after the other, the upper piece's first, each rounded to nearest;
* ``bfdot`` (Arm, without FEAT_EBF16, which programs have to turn on) adds up the two exact products, then that and the sum, and
  rounds both results to odd: by less than a unit in the last place, where to nearest is half of one at most.

So a sum of ``n`` products, in any order, is off by at most ``(n + 2) 2^-24`` times the sum of their magnitudes, as one of float32
multiply-adds may be; and by ``n 2^-126``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ansorlite.codegen import types
from ansorlite.codegen.builder import Builder
from ansorlite.target import Target
from ansorlite.te.ops import DOTS, BinaryOp
from ansorlite.te.words import WORD


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


def _bf16(feature: str, name: str, *lanes: int) -> tuple[Instruction, ...]:
    return tuple(Instruction(BinaryOp.DOT_BF16, feature, n, name.format(n=n, pieces=2 * n, bits=32 * n)) for n in lanes)


def _sve(op: BinaryOp, feature: str, name: str) -> Instruction:
    return Instruction(op, feature, 0, f"llvm.aarch64.sve.{name}")


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
    *_bf16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.{bits}", 16, 8, 4),
    *_bf16("bf16", "llvm.aarch64.neon.bfdot.v{n}f32.v{pieces}bf16", 4, 2),
    _sve(BinaryOp.DOT_S8S8, "sve", "sdot.nxv4i32"),
    _sve(BinaryOp.DOT_U8U8, "sve", "udot.nxv4i32"),
    _sve(BinaryOp.DOT_U8S8, "i8mm", "usdot.nxv4i32"),
    _sve(BinaryOp.DOT_BF16, "bf16", "bfdot"),
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
    found = _found(b.module.target, op, lanes)
    if found is None and _in_halves(b.module.target, op, lanes):
        return _dot_of_halves(op, b, lanes, types.splat("0", "i32", lanes), x, y)
    if found is None:
        return _multiplied_floats(b, lanes, x, y) if DOTS[op][0].floats else _multiplied(b, op, lanes, x, y)
    sums = DOTS[op][0].sums
    zero = types.splat(types.literal(0, sums), types.VALUE[sums], lanes)
    return dot_add(op, b, lanes, zero, x, y) if found.adds else _call(b, found, lanes, zero, x, y)


def dot_add(op: BinaryOp, b: Builder, lanes: int, total: str, x: str, y: str) -> str:
    """The dot product in every lane, added to ``total``; of floats, rounded as a step of a sum is."""
    found = _found(b.module.target, op, lanes)
    kind, words = types.value_type(DOTS[op][0].sums, lanes), types.vector("i32", lanes)
    if found is None and _in_halves(b.module.target, op, lanes):
        return _dot_of_halves(op, b, lanes, total, x, y)
    if found is None or not found.adds:
        return b.op(f"{'fadd' if DOTS[op][0].floats else 'add'} {kind} {total}, {dot(op, b, WORD, lanes, x, y)}")
    more = found.lanes or lanes
    if more == lanes:
        return _call(b, found, lanes, total, x, y)
    operands = (_in_more_lanes(b, *each, lanes, more) for each in ((kind, total), (words, x), (words, y)))
    return _first_lanes(b, types.VALUE[DOTS[op][0].sums], _call(b, found, more, *operands), lanes, more)


def _found(target: Target, op: BinaryOp, lanes: int) -> Instruction | None:
    """The instruction for ``op`` in ``lanes`` lanes, or of floats in the least number of more of them.

    So an element of a float sum is rounded alike in a vector and alone. Integers are exact however they are multiplied.
    """
    found = instruction(target, op, lanes)
    wider = (n for n in (2, 4, 8, 16) if n > lanes and DOTS[op][0].floats)
    while found is None and (n := next(wider, None)) is not None:
        found = instruction(target, op, n)
    return found


def _in_halves(target: Target, op: BinaryOp, lanes: int) -> bool:
    """Whether bytes are best multiplied as numbers of 16 bits, two words for one: as what matrix units alone multiply."""
    return DOTS[op][0].bits == 8 and instruction(target, BinaryOp.DOT_S16S16, lanes) is not None


def _dot_of_halves(op: BinaryOp, b: Builder, lanes: int, total: str, x: str, y: str) -> str:
    """The dot product of bytes, added to ``total``: of the lower ones of each pair, and of the upper ones."""
    words, pairs = types.vector("i32", lanes), types.vector("i16", 2 * lanes)
    eight = types.splat("8", "i16", 2 * lanes)
    halves: list[tuple[str, str]] = []
    for word, pieces in zip((x, y), DOTS[op], strict=True):
        down, upper = "ashr" if pieces.signed else "lshr", b.op(f"bitcast {words} {word} to {pairs}")
        lower = b.op(f"shl {pairs} {upper}, {eight}")
        numbers = (b.op(f"{down} {pairs} {bits}, {eight}") for bits in (lower, upper))
        first, second = (b.op(f"bitcast {pairs} {number} to {words}") for number in numbers)
        halves.append((first, second))
    for operands in zip(*halves, strict=True):
        total = dot_add(BinaryOp.DOT_S16S16, b, lanes, total, *operands)
    return total


def _in_more_lanes(b: Builder, kind: str, value: str, lanes: int, more: int) -> str:
    """The first lanes of a vector of ``more``, the others 0."""
    if lanes == 1:
        return b.op(f"insertelement {types.vector(kind, more)} zeroinitializer, {kind} {value}, i64 0")
    return b.shuffle(kind, value, "zeroinitializer", (min(lane, lanes) for lane in range(more)))


def _first_lanes(b: Builder, element: str, value: str, lanes: int, more: int) -> str:
    kind = types.vector(element, more)
    if lanes == 1:
        return b.op(f"extractelement {kind} {value}, i64 0")
    return b.shuffle(kind, value, "poison", range(lanes))


def _call(b: Builder, how: Instruction, lanes: int, total: str, x: str, y: str) -> str:
    words = types.vector("i32", lanes)
    pieces, _ = DOTS[how.op]
    element, count = "bfloat" if pieces.floats else f"i{pieces.bits}", lanes * pieces.count
    operand = types.vector(element, count)
    operands = [(operand, b.op(f"bitcast {words} {word} to {operand}")) for word in (x, y)]
    if not how.lanes:
        return _scalable_call(b, how, types.VALUE[pieces.sums], lanes, [total, *(bits for _, bits in operands)])
    if how.pairs:
        halves = types.vector("i16", 2 * lanes)
        operands = [(halves, b.call(halves, how.pairs, *operands)), (halves, types.splat("1", "i16", 2 * lanes))]
    sums = types.value_type(pieces.sums, lanes)
    return b.call(sums, how.name, *([(sums, total)] if how.adds else []), *operands)


def _scalable_call(b: Builder, how: Instruction, sums: str, lanes: int, operands: list[str]) -> str:
    """An intrinsic of SVE's: of vectors as long as its registers, of types that do not say how long they are."""
    pieces, _ = DOTS[how.op]
    result, mangled = f"<vscale x 4 x {sums}>", f"nxv4{types.suffix(sums, 1)}"
    total, *words = operands
    given = [_scalable(b, sums, 4, lanes, total)]
    element = "bfloat" if pieces.floats else f"i{pieces.bits}"
    given += [_scalable(b, element, 4 * pieces.count, lanes * pieces.count, word) for word in words]
    extract = f"llvm.vector.extract.{types.suffix(sums, lanes)}.{mangled}"
    return b.call(types.vector(sums, lanes), extract, (result, b.call(result, how.name, *given)), ("i64", "0"))


def _scalable(b: Builder, element: str, least: int, lanes: int, x: str) -> tuple[str, str]:
    """A vector as long as SVE's registers, which hold ``least`` elements in each 128 bits: nothing is done for it."""
    kind, name = f"<vscale x {least} x {element}>", types.suffix(element, 1)
    insert = f"llvm.vector.insert.nxv{least}{name}.{types.suffix(element, lanes)}"
    return kind, b.call(kind, insert, (kind, "poison"), (types.vector(element, lanes), x), ("i64", "0"))


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


def _multiplied_floats(b: Builder, lanes: int, x: str, y: str) -> str:
    """Both products of bfloat16, which are exact in float32, and their sum."""
    words, floats = types.vector("i32", lanes), types.vector("float", lanes)
    products = []
    for shift in (0, 16):
        factors = []
        for word in (x, y):
            bits = b.op(f"shl {words} {word}, {types.splat(str(shift), 'i32', lanes)}")
            kept = b.op(f"and {words} {bits}, {types.splat(str(-0x1_0000), 'i32', lanes)}")
            exponent = b.op(f"and {words} {bits}, {types.splat(str(0x7F80_0000), 'i32', lanes)}")
            subnormal = b.op(f"icmp eq {words} {exponent}, {types.splat('0', 'i32', lanes)}")
            normal = b.select(words, lanes, subnormal, types.splat("0", "i32", lanes), kept)
            factors.append(b.op(f"bitcast {words} {normal} to {floats}"))
        products.append(b.op(f"fmul {floats} {factors[0]}, {factors[1]}"))
    return b.op(f"fadd {floats} {products[0]}, {products[1]}")
