"""A fold over a few tuples of numbers as one operation of columns.

What a sketch needs hundreds of times, of ever other columns, is not recorded operation by operation: its step and its end are
recorded once a process, and become native code of its own, in which all that happens in between stays in vector registers.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, cast

from llvmlite import ir

from ansorlite.columns.machine import BLOCK, EMIT, LANES, VECTOR, constant, read, register
from ansorlite.columns.tape import Column, Number, Op, Tape
from ansorlite.native import I64, PTR, compiled, declare, load, loop

Numbers = tuple[Number, ...]
#: The registers of the items one after the other, of what the end takes besides, and of the results; how many items.
_ARGUMENTS: Final = (("registers", PTR), ("places", PTR), ("items", I64))


class Compound:
    """``end(*state, *others)``, where ``state = step(*state, *item)`` for each item.

    Of plain numbers it is just that; of columns it is one operation. Neither function may gather or select.

    Args:
        start: the state before the first item.
        item: how many numbers an item has.
        others: how many the end takes besides.
    """

    def __init__(
        self, start: Sequence[float], step: Callable[..., Numbers], item: int, end: Callable[..., Numbers], others: int
    ) -> None:
        self._start = tuple(start)
        self._step = step
        self._item = item
        self._end = end
        self._others = others

    def __call__(
        self, items: Sequence[Sequence[Number]], others: Sequence[Number], bounds: Sequence[tuple[float, float]]
    ) -> Numbers:
        """The results; ``bounds``: between which each of them lies."""
        arguments = [number for numbers in (*items, others) for number in numbers]
        for argument in arguments:
            if isinstance(argument, Column):
                return argument.tape.call(self._native[1], len(items), arguments, bounds)
        state: Numbers = self._start
        for item in items:
            state = self._step(*state, *item)
        return self._end(*state, *others)

    @cached_property
    def _native(self) -> tuple[Any, int]:
        """The engine that owns the code, and where it is."""
        function, a = declare("compound", _ARGUMENTS)
        b = ir.IRBuilder(function.append_basic_block("entry"))
        state = [b.alloca(VECTOR) for _ in self._start]

        def numbers(first: ir.Value, count: int) -> list[ir.Value]:
            """Of the registers from place ``first`` on."""
            return [read(b, where(b.add(first, I64(place))), lane) for place in range(count)]

        def where(place: ir.Value) -> ir.Value:
            return register(b, a["registers"], load(b, a["places"], place, I64))

        with loop(b, I64(0), I64(BLOCK), LANES) as lane:
            for slot, number in zip(state, self._start, strict=True):
                b.store(constant(number), slot)
            with loop(b, I64(0), a["items"]) as item:
                taken = numbers(b.mul(item, I64(self._item)), self._item)
                for slot, value in zip(state, emitted(b, self._step, [*map(b.load, state), *taken]), strict=True):
                    b.store(value, slot)
            behind = b.mul(a["items"], I64(self._item))
            results = emitted(b, self._end, [*map(b.load, state), *numbers(behind, self._others)])
            for place, value in enumerate(results, self._others):
                b.store(value, b.gep(where(b.add(behind, I64(place))), [lane], source_etype=ir.DoubleType()), align=8)
        b.ret_void()
        engine, native = compiled(function)
        return engine, cast(int, ctypes.cast(cast(Any, native), ctypes.c_void_p).value)


def emitted(b: ir.IRBuilder, function: Callable[..., Numbers], arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """What ``function`` does, to vectors."""
    tape = Tape()
    formal = [tape.write((Op.GATHER, number), -math.inf, math.inf) for number in range(len(arguments))]
    results = [tape.number(result) for result in function(*formal)]
    values: list[ir.Value] = []
    for number, (op, *operands) in enumerate(tape.nodes):
        if op == Op.GATHER:
            values.append(arguments[operands[0]])
        elif op == Op.CONSTANT:
            values.append(constant(tape.constants[number]))
        else:
            values.append(EMIT[Op(op)][1](b, *(values[operand] for operand in operands)))
    return [values[result] for result in results]
