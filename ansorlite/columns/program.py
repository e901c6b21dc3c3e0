"""Columns of a tape, as a program that computes them for any population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.column import Number, Op, Tape
from ansorlite.columns.machine import BLOCK, FIELDS, machine

_CONSTANT, _GATHER = int(Op.CONSTANT), int(Op.GATHER)
_LEAVES: Final = (_CONSTANT, _GATHER)
#: Fields that an instruction of so many operands does not use.
_PADDING: Final = [[0] * (FIELDS - 2 - operands) for operands in range(FIELDS - 1)]


class ColumnProgram:
    """The operations that some columns need, in the machine's code."""

    def __init__(self, tape: Tape, outputs: Sequence[Number]) -> None:
        results = [tape.number(output) for output in outputs]
        last_uses = _last_uses(tape, results)
        # Constants come first and stay; every other register is free again after the last use of what is in it.
        register = {number: place for place, number in enumerate(tape.constants)}
        starts = np.cumsum([0, *map(len, tape.tables)]).tolist()
        count = len(register)
        free: list[int] = []
        code: list[list[int]] = []
        for number, (op, *arguments) in enumerate(tape.nodes):
            dying = last_uses[number]
            if dying is None or op == _CONSTANT:
                continue
            operands = [register[argument] for argument in arguments] if op != _GATHER else [arguments[0], starts[arguments[1]]]
            free += [register[argument] for argument in dying if argument not in tape.constants]
            if not free:
                free.append(count)
                count += 1
            place = register[number] = free.pop()
            code.append([op, place, *operands, *_PADDING[len(operands)]])
        self._code = np.array(code, dtype=np.int64).reshape(-1, FIELDS)
        self._tables = np.concatenate([np.zeros(0), *tape.tables])
        self._constants = np.array(list(tape.constants.values()), dtype=np.float64)
        self._registers = count
        self._results = np.array([register[number] for number in results], dtype=np.int64)

    def __len__(self) -> int:
        """How many instructions it takes."""
        return len(self._code)

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
            rows.ctypes.data, holes, n, self._tables.ctypes.data, code.ctypes.data, len(code),
            registers.ctypes.data, results.ctypes.data, len(results), out.ctypes.data, stride,
        )  # fmt: skip
        return out[:, :n]


def _last_uses(tape: Tape, results: Sequence[int]) -> list[list[int] | None]:
    """By column: ``None`` if no result needs it, else those of its arguments that nothing later needs."""
    found: list[list[int] | None] = [None] * len(tape.nodes)
    for number in results:
        found[number] = []
    for number in reversed(range(len(tape.nodes))):
        dying = found[number]
        op, *arguments = tape.nodes[number]
        if dying is None or op in _LEAVES:
            continue
        for argument in arguments:
            if found[argument] is None:
                found[argument] = []
                dying.append(argument)
    return found
