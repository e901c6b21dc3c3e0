"""Loops about one core: how many instructions of a kind it takes a cycle, and how long the next one waits for a result.

Each function writes one turn of a loop and returns how many of the things that it is about one turn has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.alignment import CACHE_LINE
from ansorlite.calibration.loop import Loop
from ansorlite.codegen import types
from ansorlite.codegen.dots import dot_add
from ansorlite.codegen.vector_math import exp
from ansorlite.target import Target
from ansorlite.te.ops import DOTS, BinaryOp

Body = Callable[[Loop], int]

#: Independent operations in one turn: more than any core has under way of one kind.
_MANY: Final = 16
#: Lanes of a vector that every core does in one part.
_SHORT: Final = 4


def chains(loop: Loop) -> int:
    """As many accumulators as find a register beside two operands, or as hide any latency."""
    return min(_MANY, loop.target.vector_registers - 4)


def clock(loop: Loop) -> int:
    """Additions and exclusive ors in turns, each waiting for the one before: one cycle each."""
    x, a, b = loop.carried("i64"), loop.constant("i64"), loop.constant("i64")
    value = x
    for _ in range(32):
        value = loop.b.op(f"add i64 {value}, {a}")
        value = loop.b.op(f"xor i64 {value}, {b}")
    loop.then(x, value)
    return 64


def issue(loop: Loop) -> int:
    """Integer operations, loads and multiply-adds side by side: of each fewer than its units take, of all more than issue.

    Vectors are short: some cores do a long one in several parts, and would be busy with these.
    """
    floats, words = types.vector("float", _SHORT), types.vector("i32", _SHORT)
    one, step = loop.constant(floats), loop.constant("i64")
    for _ in range(9):
        chain = loop.carried("i64")
        loop.then(chain, loop.b.op(f"xor i64 {chain}, {step}"))
    for chain in loop.chains(floats, 6):
        loop.then(chain, loop.fma(one, one, chain, _SHORT))
    for number, chain in enumerate(loop.chains(words, 6)):
        loop.depend(chain, loop.load(words, number * loop.target.vector_bytes), words)
    # And two of the loop itself: one that counts turns, and a comparison fused with a branch.
    return 9 + 6 + 6 + 2


def arithmetic(loop: Loop) -> int:
    one = loop.constant(loop.vector)
    for chain in loop.chains(loop.vector, chains(loop)):
        loop.then(chain, loop.fma(one, one, chain))
    return chains(loop)


def half(loop: Loop) -> int:
    """Multiply-adds as in :func:`arithmetic`, of vectors of half a register."""
    lanes = loop.lanes // 2
    kind = types.vector("float", lanes)
    one = loop.constant(kind)
    for chain in loop.chains(kind, chains(loop)):
        loop.then(chain, loop.fma(one, one, chain, lanes))
    return chains(loop)


def latency(loop: Loop) -> int:
    one, chain = loop.constant(loop.vector), loop.carried(loop.vector)
    value = chain
    for _ in range(8):
        value = loop.fma(one, one, value)
    loop.then(chain, value)
    return 8


def add_latency(loop: Loop) -> int:
    one, chain = loop.constant(loop.vector), loop.carried(loop.vector)
    value = chain
    for _ in range(8):
        value = loop.b.op(f"fadd {loop.vector} {value}, {one}")
    loop.then(chain, value)
    return 8


def div(loop: Loop) -> int:
    one = loop.constant(loop.vector)
    for chain in loop.chains(loop.vector, 8):
        loop.then(chain, loop.b.op(f"fdiv {loop.vector} {one}, {chain}"))
    return 8


def math(loop: Loop) -> int:
    for number, chain in enumerate(loop.chains(f"<{loop.lanes} x i32>", 4)):
        value = loop.load(loop.vector, number * loop.target.vector_bytes)
        loop.depend(chain, exp(loop.b, "float32", loop.lanes, value))
    return 4


def convert(loop: Loop) -> int:
    """To integers and back."""
    words = f"<{loop.lanes} x i32>"
    for chain in loop.chains(words, 8):
        real = loop.b.op(f"sitofp {words} {chain} to {loop.vector}")
        loop.then(chain, loop.b.op(f"fptosi {loop.vector} {real} to {words}"))
    return 16


def dot_product(op: BinaryOp) -> Body:
    """Dot products of words by the operation ``op``, each with another operand: LLVM would make one of equal ones."""

    def body(loop: Loop) -> int:
        words, sums = types.vector("i32", loop.lanes), types.value_type(DOTS[op][0].sums, loop.lanes)
        one = loop.constant(words)
        for chain in loop.chains(sums, chains(loop)):
            own = chain if sums == words else loop.b.op(f"bitcast {sums} {chain} to {words}")
            loop.then(chain, dot_add(op, loop.b, loop.lanes, chain, own, one))
        return chains(loop)

    return body


def load(loop: Loop) -> int:
    words = f"<{loop.lanes} x i32>"
    return _loads(loop, lambda number: loop.load(words, number * loop.target.vector_bytes))


def _loads(loop: Loop, one: Callable[[int], str]) -> int:
    """Two loads for each chain of integers, so that loads take longer than what uses them."""
    words = f"<{loop.lanes} x i32>"
    for number, chain in enumerate(loop.chains(words, chains(loop))):
        loop.depend(chain, loop.b.op(f"xor {words} {one(2 * number)}, {one(2 * number + 1)}"), words)
    return 2 * chains(loop)


def broadcast(loop: Loop) -> int:
    words = f"<{loop.lanes} x i32>"
    for number, chain in enumerate(loop.chains(words, chains(loop))):
        word = loop.load("i32", 4 * number)
        first = loop.b.op(f"insertelement {words} poison, i32 {word}, i64 0")
        loop.depend(chain, loop.b.op(f"shufflevector {words} {first}, {words} poison, {words} zeroinitializer"), words)
    return chains(loop)


def gather(loop: Loop) -> int:
    """Elements a line and more apart, one load each: no two can be part of one vector."""
    words = f"<{loop.lanes} x i32>"
    for number, chain in enumerate(loop.chains(words, 4)):
        value = "poison"
        for lane in range(loop.lanes):
            element = loop.load("i32", 68 * (lane * 4 + number))
            value = loop.b.op(f"insertelement {words} {value}, i32 {element}, i64 {lane}")
        loop.depend(chain, value, words)
    return 4 * loop.lanes


def scatter(loop: Loop) -> int:
    """Elements a line and more apart, stored as the code generator stores them."""
    pointers, bits = f"<{loop.lanes} x ptr>", f"<{loop.lanes} x i1>"
    value = loop.constant(loop.vector)
    name = f"llvm.masked.scatter.v{loop.lanes}f32.v{loop.lanes}p0"
    loop.b.module.declare(f"void @{name}({loop.vector}, {pointers}, i32, {bits})")
    apart = ", ".join(f"i64 {68 * lane}" for lane in range(loop.lanes))
    every = ", ".join("i1 true" for _ in range(loop.lanes))
    for number in range(4):
        at = loop.b.op(f"getelementptr i8, ptr {loop.at(68 * loop.lanes * number)}, <{loop.lanes} x i64> <{apart}>")
        loop.b.do(f"call void @{name}({loop.vector} {value}, {pointers} {at}, i32 4, {bits} <{every}>)")
    return 4 * loop.lanes


def masked(loop: Loop) -> int:
    words, bits = f"<{loop.lanes} x i32>", f"<{loop.lanes} x i1>"
    some = loop.b.at_entry(f"icmp ne {words} {loop.constant(words)}, zeroinitializer")
    name = f"llvm.masked.load.v{loop.lanes}i32.p0"
    loop.b.module.declare(f"{words} @{name}(ptr, i32, {bits}, {words})")

    def one(number: int) -> str:
        place = loop.at(number * loop.target.vector_bytes)
        return loop.b.op(f"call {words} @{name}(ptr {place}, i32 4, {bits} {some}, {words} zeroinitializer)")

    return _loads(loop, one)


def masked_store(loop: Loop) -> int:
    words, bits = f"<{loop.lanes} x i32>", f"<{loop.lanes} x i1>"
    value = loop.constant(words)
    some = loop.b.at_entry(f"icmp ne {words} {loop.constant(words)}, zeroinitializer")
    name = f"llvm.masked.store.v{loop.lanes}i32.p0"
    loop.b.module.declare(f"void @{name}({words}, ptr, i32, {bits})")
    for number in range(_MANY):
        loop.b.do(f"call void @{name}({words} {value}, ptr {loop.at(number * loop.target.vector_bytes)}, i32 4, {bits} {some})")
    return _MANY


def crossing(loop: Loop) -> int:
    """Vectors that begin in one line and end in the next."""
    words = f"<{loop.lanes} x i32>"
    return _loads(loop, lambda number: loop.load(words, 64 * (number + 1) - 4))


def store(loop: Loop) -> int:
    value = loop.constant(loop.vector)
    for number in range(_MANY):
        loop.store(loop.vector, value, number * loop.target.vector_bytes)
    return _MANY


def forwarding(loop: Loop) -> int:
    one = loop.constant(loop.vector)
    place = loop.at(0)
    for _ in range(4):
        value = loop.b.op(f"load volatile {loop.vector}, ptr {place}, align 4")
        loop.b.do(f"store volatile {loop.vector} {loop.b.op(f'fadd {loop.vector} {value}, {one}')}, ptr {place}, align 4")
    return 4


def update(loop: Loop) -> int:
    one = loop.constant(loop.vector)
    for number in range(4 * _MANY):
        offset = number * loop.target.vector_bytes
        value = loop.load(loop.vector, offset)
        loop.store(loop.vector, loop.b.op(f"fadd {loop.vector} {value}, {one}"), offset)
    return 4 * _MANY


def move(loop: Loop) -> int:
    """A register tile: loaded, then stored elsewhere."""
    for start in range(0, 4 * _MANY, 8):
        values = [loop.load(loop.vector, (start + n) * loop.target.vector_bytes) for n in range(8)]
        for n, value in enumerate(values):
            loop.store(loop.vector, value, (4 * _MANY + start + n) * loop.target.vector_bytes)
    return 4 * _MANY


def too_many(target: Target) -> int:
    """Accumulators beyond the registers in :func:`spill`: so many that arithmetic cannot hide what they cost."""
    return target.vector_registers


def spill(loop: Loop) -> int:
    one = loop.constant(loop.vector)
    count = loop.target.vector_registers + too_many(loop.target)
    for chain in loop.chains(loop.vector, count):
        loop.then(chain, loop.fma(one, one, chain))
    return count


def straight(count: int) -> Body:
    """``count`` instructions in a row: broadcasts of different elements, and a multiply-add of each."""

    def body(loop: Loop) -> int:
        one = loop.constant(loop.vector)
        found = loop.chains(loop.vector, chains(loop) - 1)
        values = list(found)
        for number in range(count // 2):
            place, element = number % len(values), loop.load("float", 4 * number)
            first = loop.b.op(f"insertelement {loop.vector} poison, float {element}, i64 0")
            operand = loop.b.op(
                f"shufflevector {loop.vector} {first}, {loop.vector} poison, <{loop.lanes} x i32> zeroinitializer"
            )
            values[place] = loop.fma(one, operand, values[place])
        for chain, value in zip(found, values, strict=True):
            loop.then(chain, value)
        return count

    return body


def branch(loop: Loop) -> int:
    """Iterations of a loop inside of another, as those over reductions are: it moves two addresses, and its end is a surprise."""
    b, count, steps = loop.b, 64, (loop.target.vector_bytes, 4)
    before, firsts = b.block, [loop.constant("i64") for _ in steps]
    head, after = b.label("head"), b.label("after")
    b.jump(head)
    b.start(head)
    b.do(f"%i = phi i64 [ 0, %{before} ], [ %next, %{head} ]")
    for number, first in enumerate(firsts):
        b.do(f"%place{number} = phi i64 [ {first}, %{before} ], [ %moved{number}, %{head} ]")
    for number, step in enumerate(steps):
        b.do(f'call void asm sideeffect "", "r,~{{memory}}"(i64 %place{number})')
        b.do(f"%moved{number} = add i64 %place{number}, {step}")
    b.do("%next = add i64 %i, 1")
    b.do(f"%more = icmp slt i64 %next, {count}")
    # A short loop that lies in two lines of code takes a cycle more on some cores. Those of programs are longer than a line.
    aligned = b.module.node(f'!{{!"llvm.loop.align", i32 {CACHE_LINE}}}')
    b.do(f"br i1 %more, label %{head}, label %{after}, !llvm.loop {b.module.loop(aligned)}")
    b.start(after)
    return count
