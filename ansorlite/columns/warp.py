"""What the threads of a warp touch at once: how many pieces of memory, and how many passes over banks that takes.

Threads are numbered by digits, as loops over them are: of each digit the address of a thread moves by a step, up to a limit. It
is one operation of columns: all pairs of threads are looked at in native code of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, cast

from llvmlite import ir

from ansorlite.columns.arithmetic import both, equal, floor, minimum, modulo, where
from ansorlite.columns.compound import Numbers, emitted
from ansorlite.columns.machine import BLOCK, LANES, VECTOR, constant, read, register
from ansorlite.columns.tape import Column, Number
from ansorlite.machine.gpu import BANKS
from ansorlite.machine.matrix import WARP
from ansorlite.native import I64, PTR, compiled, declare, load, loop, splat

#: Chunks that all banks hold, and the bits of their numbers.
_CHUNKS: Final = 8
_BITS: Final = (1, 2, 4)
#: Apart from each other: pieces of different groups of threads, and what threads have that are not there.
_GROUP: Final = float(1 << 45)
_NOBODY: Final = -float(1 << 50)
_ARGUMENTS: Final = (("registers", PTR), ("places", PTR), ("items", I64))


class Digit(NamedTuple):
    """A digit of the numbers of threads.

    Attributes:
        radix: how many values it has.
        step: by how much it moves a coordinate, at most by ``limit``.
        apart: bytes that one of those coordinates moves the row's beginning by.
        row, column: rows, and elements of a row, that it moves by.
    """

    radix: Number
    step: Number
    limit: Number
    apart: Number
    row: Number = 0
    column: Number = 0


class Layout(NamedTuple):
    """Where the rows and columns of a buffer lie; without a swizzle all is said in bytes.

    Attributes:
        pitch: bytes from row to row.
        item: bytes of an element.
        swizzle: chunks that change places from row to row; 1: none.
        together: rows of one order.
        chunk: elements of a chunk.
    """

    pitch: Number = 0
    item: Number = 1
    swizzle: Number = 1
    together: Number = 1
    chunk: Number = 1


_IN_BYTES: Final = Layout()


def touched(
    digits: Sequence[Digit],
    besides: Sequence[tuple[Number, Number, Number]],
    threads: Number,
    piece: Number,
    group: Number,
    layout: Layout = _IN_BYTES,
) -> tuple[Number, Number]:
    """How many pieces the first warp touches, and passes over the banks, of a piece of each.

    Args:
        digits: the fastest one first.
        besides: by thread what is added to bytes, row and column of where it stands; empty: nothing.
        threads: that there are.
        piece: bytes.
        group: neighbouring threads that go over the banks together; a piece that several of them touch is one.
    """
    more = besides or [(0, 0, 0)] * WARP
    assert len(more) == WARP
    others = (threads, piece, group, *layout)
    arguments = [number for numbers in (*digits, *more, others) for number in numbers]
    for argument in arguments:
        if isinstance(argument, Column):
            return cast(
                tuple[Number, Number],
                argument.tape.call(_native()[1], len(digits), arguments, [(1, WARP), (1, WARP)]),
            )
    return _counted(digits, more, others)


def _advance(
    left: Number, apart: Number, row: Number, column: Number,
    radix: Number, step: Number, limit: Number, by_apart: Number, by_row: Number, by_column: Number,
) -> Numbers:  # fmt: skip
    """What is left of a thread's number, and where it stands, with one more digit of it."""
    on = floor(left / radix)
    along = minimum((left - on * radix) * step, limit)
    return on, apart + along * by_apart, row + along * by_row, column + along * by_column


def _placed(
    apart: Number, row: Number, column: Number, thread: Number, threads: Number, piece: Number, group: Number,
    pitch: Number, item: Number, swizzle: Number, together: Number, chunk: Number,
) -> Numbers:  # fmt: skip
    """The piece that a thread touches, its bank, whether the thread is there, and whether it is the first of a group."""
    number, turn = floor(column / chunk), modulo(modulo(floor(row / together), swizzle), _CHUNKS)
    low = modulo(number, _CHUNKS)
    common: Number = 0
    for bit in _BITS:
        common = common + bit * both(modulo(floor(low / bit), 2), modulo(floor(turn / bit), 2))
    # The exclusive or of both, added to what stands before it.
    at = (number + turn - 2 * common) * chunk + column - number * chunk
    place = floor((apart + row * pitch + at * item) / piece)
    there, of = thread < threads, floor(thread / group)
    own = where(there, place + of * _GROUP, _NOBODY - thread)
    return own, modulo(place, floor(BANKS / piece)) + of * BANKS, there, equal(thread, of * group)


def _counted(digits: Sequence[Digit], besides: Sequence[Numbers], others: Numbers) -> tuple[Number, Number]:
    seen: dict[float, set[float]] = {}
    pieces: set[float] = set()
    for thread, (apart, row, column) in enumerate(besides):
        left: Number = thread
        for digit in digits:
            left, apart, row, column = _advance(left, apart, row, column, *digit)
        own, bank, there, _ = _placed(apart, row, column, thread, *others)
        if there:
            pieces.add(cast(float, own))
            seen.setdefault(cast(float, bank), set()).add(cast(float, own))
    deepest: dict[float, int] = {}
    for bank, here in seen.items():
        deepest[bank // BANKS] = max(deepest.get(bank // BANKS, 0), len(here))
    return len(pieces), sum(deepest.values())


@cache
def _native() -> tuple[Any, int]:
    """The engine that owns the code, and where it is."""
    function, a = declare("warp", _ARGUMENTS)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    size, behind = len(Digit._fields), 3 * WARP
    others = 3 + len(Layout._fields)
    own, bank, first = (b.alloca(ir.ArrayType(VECTOR, WARP)) for _ in range(3))
    state = [b.alloca(VECTOR) for _ in range(4)]
    pieces, passes, deepest, again, depth = (b.alloca(VECTOR) for _ in range(5))

    def of(array: ir.Value, thread: ir.Value) -> ir.Value:
        return b.gep(array, [I64(0), thread])

    def combined(function_: Callable[..., Number], *values: ir.Value) -> ir.Value:
        return emitted(b, lambda *numbers: (function_(*numbers),), values)[0]

    with loop(b, I64(0), I64(BLOCK), LANES) as lane:

        def numbers(start: ir.Value, count: int) -> list[ir.Value]:
            places = (load(b, a["places"], b.add(start, I64(place)), I64) for place in range(count))
            return [read(b, register(b, a["registers"], place), lane) for place in places]

        besides = b.mul(a["items"], I64(size))
        taken = numbers(b.add(besides, I64(behind)), others)
        for slot in (pieces, passes, deepest):
            b.store(constant(0.0), slot)
        with loop(b, I64(0), I64(WARP)) as thread:
            number = splat(b, b.sitofp(thread, ir.DoubleType()), LANES)
            for slot, value in zip(state, [number, *numbers(b.add(besides, b.mul(thread, I64(3))), 3)], strict=True):
                b.store(value, slot)
            with loop(b, I64(0), a["items"]) as item:
                digit = numbers(b.mul(item, I64(size)), size)
                for slot, value in zip(state, emitted(b, _advance, [*map(b.load, state), *digit]), strict=True):
                    b.store(value, slot)
            mine, at, there, begins = emitted(b, _placed, [*map(b.load, state[1:]), number, *taken])
            b.store(mine, of(own, thread))
            b.store(at, of(bank, thread))
            b.store(constant(0.0), again)
            b.store(constant(1.0), depth)
            with loop(b, I64(0), thread) as before:
                values = [b.load(of(array, before)) for array in (own, bank, first)]
                after = emitted(b, _met, [b.load(again), b.load(depth), mine, at, *values])
                for slot, value in zip((again, depth), after, strict=True):
                    b.store(value, slot)
            new = combined(lambda flag, seen: both(flag, 1 - seen), there, b.load(again))
            b.store(new, of(first, thread))
            b.store(b.fadd(b.load(pieces), new), pieces)
            after = emitted(b, _passed, [b.load(passes), b.load(deepest), b.load(depth), new, begins])
            for slot, value in zip((passes, deepest), after, strict=True):
                b.store(value, slot)
        b.store(b.fadd(b.load(passes), b.load(deepest)), passes)
        end = b.add(besides, I64(behind + others))
        for place, slot in enumerate((pieces, passes)):
            target = register(b, a["registers"], load(b, a["places"], b.add(end, I64(place)), I64))
            b.store(b.load(slot), b.gep(target, [lane], source_etype=ir.DoubleType()), align=8)
    b.ret_void()
    engine, native = compiled(function)
    return engine, cast(int, ctypes.cast(cast(Any, native), ctypes.c_void_p).value)


def _met(
    again: Number, depth: Number, mine: Number, at: Number, other: Number, bank: Number, first: Number
) -> Numbers:  # fmt: skip
    """Whether a thread's piece was touched before, and how deep its bank is, with one more of the threads before it."""
    return where(equal(mine, other), 1, again), depth + both(equal(at, bank), first)


def _passed(passes: Number, deepest: Number, depth: Number, new: Number, begins: Number) -> Numbers:
    """The passes of whole groups, and of the present one, with one more thread."""
    here = depth * new
    return where(begins, passes + deepest, passes), where(begins, here, where(deepest < here, here, deepest))
