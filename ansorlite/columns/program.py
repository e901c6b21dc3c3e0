"""Columns of a tape, as a program that computes them for any population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.machine import BLOCK, FIELDS, machine
from ansorlite.columns.tape import Number, Op, Tape

_CONSTANT, _GATHER, _SELECT = int(Op.CONSTANT), int(Op.GATHER), int(Op.SELECT)
#: Fields that an instruction of so many operands does not use.
_PADDING: Final = [[0] * (FIELDS - 2 - operands) for operands in range(FIELDS - 1)]


class ColumnProgram:
    """The operations that some columns need, in the machine's code."""

    def __init__(self, tape: Tape, outputs: Sequence[Number]) -> None:
        results = [tape.number(output) for output in outputs]
        # Constants come first and stay.
        register: list[int] = [-1] * len(tape.nodes)
        for place, number in enumerate(tape.constants):
            register[number] = place
        count = len(tape.constants)
        free: list[int] = []

        def needed(number: int) -> int:
            """Where a column is from its first use on, as seen from the end; before it is made, its register is free again."""
            nonlocal count
            if register[number] < 0:
                if free:
                    register[number] = free.pop()
                else:
                    register[number] = count
                    count += 1
            return register[number]

        self._results = np.array([needed(number) for number in results], dtype=np.int64)
        starts = np.cumsum([0, *map(len, tape.tables)]).tolist()
        code: list[list[int]] = []
        lists: list[int] = []
        for number in range(len(tape.nodes) - 1, -1, -1):
            place, node = register[number], tape.nodes[number]
            op = node[0]
            if place < 0 or op == _CONSTANT:
                continue
            free.append(place)
            if op == _GATHER:
                code.append([op, place, node[1], starts[node[2]], 0])
            elif op == _SELECT:
                code.append([op, place, needed(node[1]), len(lists) - node[2], 0])
                lists += [needed(argument) for argument in node[3:]]
            else:
                operands = [register[argument] if register[argument] >= 0 else needed(argument) for argument in node[1:]]
                code.append([op, place, *operands, *_PADDING[len(operands)]])
        code.reverse()
        instructions = np.array(code, dtype=np.int64).reshape(-1, FIELDS)
        # Lists of registers to select from are behind the code.
        instructions[instructions[:, 0] == _SELECT, 3] += instructions.size
        self._instructions = len(code)
        self._code = np.concatenate([instructions.ravel(), np.array(lists, dtype=np.int64)])
        self._tables = np.concatenate([np.zeros(0), *tape.tables])
        self._constants = np.array(list(tape.constants.values()), dtype=np.float64)
        self._registers = count

    def __len__(self) -> int:
        """How many instructions it takes."""
        return self._instructions

    def run(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(n, holes)`` rows to ``(outputs, n)``."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        n, holes = rows.shape
        stride = -(-n // BLOCK) * BLOCK
        out = np.empty((len(self._results), stride))
        registers = np.empty((self._registers, BLOCK))
        registers[: len(self._constants)] = self._constants[:, None]
        _, run = machine()
        code, results = self._code, self._results
        run(
            rows.ctypes.data, holes, n, self._tables.ctypes.data, code.ctypes.data, self._instructions,
            registers.ctypes.data, results.ctypes.data, len(results), out.ctypes.data, stride,
        )  # fmt: skip
        return out[:, :n]
