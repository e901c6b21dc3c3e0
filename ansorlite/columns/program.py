"""Columns of a tape, as a program that computes them for any population."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ansorlite.alignment import CACHE_LINE
from ansorlite.columns.machine import BLOCK, FIELDS, machine
from ansorlite.columns.tape import CONSTANT, Number, Op, Tape

_GATHER, _WHERE, _SELECT = (int(op) for op in (Op.GATHER, Op.WHERE, Op.SELECT))
_ADD, _EQUAL = int(Op.ADD), int(Op.EQUAL)  # all between have two operands
_LINE = CACHE_LINE // 8  # numbers of a cache line
_CALL, _RESULT = int(Op.CALL), int(Op.RESULT)


class ColumnProgram:
    """The operations that some columns need, in the machine's code.

    Attributes:
        holes: on whose choices the columns depend, in order.
    """

    def __init__(self, tape: Tape, outputs: Sequence[Number]) -> None:
        results = [tape.number(output) for output in outputs]
        register: list[int] = [-1] * len(tape.nodes)
        fresh = count()
        free: list[int] = []
        constants: dict[int, float] = {}  # by register, where they stay

        def needed(number: int) -> int:
            """Where a column is from its first use on, as seen from the end; before it is made, its register is free again."""
            place = register[number]
            if place < 0:
                if tape.nodes[number] is CONSTANT:
                    place = next(fresh)
                    constants[place] = tape.constants[number]
                else:
                    place = free.pop() if free else next(fresh)
                register[number] = place
            return place

        self._results = np.array([needed(number) for number in results], dtype=np.int64)
        starts = np.cumsum([0, *map(len, tape.tables)]).tolist()
        code: list[int] = []  # from the end to the start
        lists: list[int] = []
        for number in range(len(tape.nodes) - 1, -1, -1):
            place = register[number]
            if place < 0:
                continue
            node = tape.nodes[number]
            if node is CONSTANT:
                continue
            op = node[0]
            if op == _RESULT:
                register[node[1]] = place  # any: it is needed
                continue
            if op == _CALL:
                made = [needed(number + result) for result in range(1, 1 + node[3])]
                free += made
                code += (node[2], len(lists), node[1], 0, op)
                lists += [needed(argument) for argument in node[4:]]
                lists += made
                continue
            free.append(place)
            if _ADD <= op <= _EQUAL:
                # Nearly all are such, so these are not left to what follows.
                _, a, b = node
                left = register[a]
                if left < 0:
                    left = needed(a)
                right = register[b]
                if right < 0:
                    right = needed(b)
                code += (0, right, left, place, op)
            elif op == _GATHER:
                code += (0, starts[node[2]], node[1], place, op)
            elif op == _SELECT:
                code += (0, len(lists) - node[2], needed(node[1]), place, op)
                lists += [needed(argument) for argument in node[3:]]
            elif op == _WHERE:
                code += (needed(node[3]), needed(node[2]), needed(node[1]), place, op)
            else:
                code += (0, 0, needed(node[1]), place, op)
        instructions = np.array(code[::-1], dtype=np.int64).reshape(-1, FIELDS)
        self.holes: tuple[int, ...] = tuple(np.unique(instructions[instructions[:, 0] == _GATHER, 2]).tolist())
        # Lists of registers, to select from or to call with, are behind the code.
        instructions[instructions[:, 0] >= _SELECT, 3] += instructions.size
        self._instructions = len(instructions)
        self._code = np.concatenate([instructions.ravel(), np.array(lists, dtype=np.int64)])
        self._tables = np.concatenate([np.zeros(0), *tape.tables])
        self._constant_registers = np.array(list(constants), dtype=np.int64)
        self._constants = np.array(list(constants.values()), dtype=np.float64)
        self._registers = next(fresh)

    def __len__(self) -> int:
        """How many instructions it takes."""
        return self._instructions

    def run(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(n, holes)`` rows to ``(outputs, n)``."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        n, holes = rows.shape
        stride = -(-n // BLOCK) * BLOCK
        out = _aligned(len(self._results), stride)
        registers = _aligned(self._registers, BLOCK)
        registers[self._constant_registers] = self._constants[:, None]
        _, run = machine()
        code, results = self._code, self._results
        run(
            rows.ctypes.data, holes, n, self._tables.ctypes.data, code.ctypes.data, self._instructions,
            registers.ctypes.data, results.ctypes.data, len(results), out.ctypes.data, stride,
        )  # fmt: skip
        return out[:, :n]


def _aligned(rows: int, columns: int) -> NDArray[np.float64]:
    """``(rows, columns)`` in which no vector lies in two cache lines; ``columns`` is a multiple of a line's."""
    room = np.empty(rows * columns + _LINE)
    first = -room.ctypes.data % (8 * _LINE) // 8
    return room[first : first + rows * columns].reshape(rows, columns)
