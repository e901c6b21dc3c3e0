"""A checksum of bytes in memory, for exported libraries: XXH64 (https://xxhash.com), at about the speed of memory.

``void ansorlite_checksum(const char *bytes, int64_t count, int64_t *result)``
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from llvmlite import ir

from ansorlite import native
from ansorlite.native import I32, I64, PTR
from ansorlite.target import Target

#: The function's symbol.
CHECKSUM: Final = "ansorlite_checksum"

#: XXH64's primes.
_P: Final = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)

#: Bytes of a stripe: a word for each of four sums.
_STRIPE: Final = 32

_BYTE: Final = ir.IntType(8)


def text(target: Target) -> str:
    """The function as LLVM IR."""
    module = _function().module
    module.triple = target.triple
    return str(module)


def checksum(block: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    """Of a contiguous array's bytes, here and now."""
    result = np.zeros(1, np.uint64)
    _here()[1](block.ctypes.data, block.nbytes, result.ctypes.data)
    return int(result[0])


@cache
def _here() -> tuple[Any, Any]:
    return native.compiled(_function())


def _function() -> ir.Function:
    function, arguments = native.declare(CHECKSUM, (("bytes", PTR), ("count", I64), ("result", PTR)))
    data, count = arguments["bytes"], arguments["count"]
    b = ir.IRBuilder(function.append_basic_block("entry"))
    place, state = b.alloca(I64), b.alloca(I64)
    b.store(I64(0), place)

    def word(kind: ir.IntType) -> ir.Value:
        """The next word, read wherever it begins; the place is moved behind it."""
        at = b.load(place, typ=I64)
        loaded = b.load(b.gep(data, [at], source_etype=_BYTE), typ=kind, align=1)
        b.store(b.add(at, I64(kind.width // 8)), place)
        return loaded if kind is I64 else b.zext(loaded, I64)

    def left(nbytes: int) -> ir.Value:
        return b.icmp_unsigned("<=", b.add(b.load(place, typ=I64), I64(nbytes)), count)

    def whole(nbytes: int, body: Any) -> None:
        """``body`` for as long as so many bytes are left."""
        head, inside, after = (function.append_basic_block(name) for name in ("head", "inside", "after"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(left(nbytes), inside, after)
        b.position_at_end(inside)
        body()
        b.branch(head)
        b.position_at_end(after)

    sums = [b.alloca(I64) for _ in range(4)]
    for variable, start in zip(sums, (_P[0] + _P[1], _P[1], 0, -_P[0]), strict=True):
        b.store(_number(start), variable)

    def stripe() -> None:
        for variable in sums:
            b.store(_round(b, b.load(variable, typ=I64), word(I64)), variable)

    whole(_STRIPE, stripe)
    total = _joined(b, [b.load(variable, typ=I64) for variable in sums])
    long = b.icmp_unsigned(">=", count, I64(_STRIPE))
    b.store(b.add(b.select(long, total, _number(_P[4])), count), state)

    def tail(kind: ir.IntType, mixed: Any, turn: int, by: int, plus: int) -> None:
        def body() -> None:
            mixed_in = b.xor(b.load(state, typ=I64), mixed(word(kind)))
            b.store(b.add(b.mul(_turned(b, mixed_in, turn), _number(by)), _number(plus)), state)

        whole(kind.width // 8, body)

    tail(I64, lambda lane: _round(b, I64(0), lane), 27, _P[0], _P[3])
    tail(I32, lambda lane: b.mul(lane, _number(_P[0])), 23, _P[1], _P[2])
    tail(_BYTE, lambda lane: b.mul(lane, _number(_P[4])), 11, _P[0], 0)
    hashed = b.load(state, typ=I64)
    for shift, by in ((33, _P[1]), (29, _P[2]), (32, 1)):
        hashed = b.mul(b.xor(hashed, b.lshr(hashed, I64(shift))), _number(by))
    b.store(hashed, arguments["result"])
    b.ret_void()
    return function


def _joined(b: ir.IRBuilder, sums: Sequence[ir.Value]) -> ir.Value:
    """The four sums of stripes as one."""
    total: ir.Value = I64(0)
    for value, turn in zip(sums, (1, 7, 12, 18), strict=True):
        total = b.add(total, _turned(b, value, turn))
    for value in sums:
        total = b.add(b.mul(b.xor(total, _round(b, I64(0), value)), _number(_P[0])), _number(_P[3]))
    return total


def _round(b: ir.IRBuilder, total: ir.Value, lane: ir.Value) -> ir.Value:
    return b.mul(_turned(b, b.add(total, b.mul(lane, _number(_P[1]))), 31), _number(_P[0]))


def _turned(b: ir.IRBuilder, value: ir.Value, by: int) -> ir.Value:
    return b.or_(b.shl(value, I64(by)), b.lshr(value, I64(64 - by)))


def _number(value: int) -> ir.Value:
    return I64(value % (1 << 64))
