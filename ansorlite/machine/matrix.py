"""Matrix units of GPUs: instructions by which some threads together add a product of two tiles to a third one.

Each thread keeps the same elements of the sums in all of NVIDIA's units: of every 16 rows and 8 columns that a warp has, those in
rows ``lane // 4`` and 8 further down, and columns ``lane % 4 * 2`` and the next (PTX ISA, matrix fragments for mma and wgmma).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Bytes that a thread gives or takes as one piece along the sum: 8 halves, or 16 bytes.
PIECE_BYTES: Final = 16
#: Lanes of a warp along the rows, and elements of a thread along them in one unit; along the columns.
LANES_DOWN: Final = 8
HELD_DOWN: Final = 2
LANES_ACROSS: Final = 4
HELD_ACROSS: Final = 2
#: Rows of a warp, and columns, in one unit.
ROWS: Final = LANES_DOWN * HELD_DOWN
COLUMNS: Final = LANES_ACROSS * HELD_ACROSS
#: Words that a lane gives a unit of 16 rows and two pieces of steps, and of 8 columns.
WORDS_OF_ROWS: Final = 4
WORDS_OF_COLUMNS: Final = 2
#: Threads of a warp.
WARP: Final = LANES_DOWN * LANES_ACROSS


@dataclass(frozen=True)
class MatrixUnit:
    """One instruction.

    Attributes:
        name: by which schedules name it.
        factors: dtype of the elements of both factors.
        sums: dtype of the sums.
        steps: products that are added up to each element.
        warps: that run it together, each with 16 rows of its own.
        columns: numbers of columns that one instruction may have.
        from_shared: whether it reads its factors from shared memory by itself, in core matrices: 8 rows of 16 bytes that lie side
            by side. Else threads load them before.
        rate: products that a multiprocessor begins in a cycle.
    """

    name: str
    factors: str
    sums: str
    steps: int
    warps: int
    columns: tuple[int, ...]
    from_shared: bool
    rate: int

    @staticmethod
    def of(facts: Mapping[str, Any]) -> MatrixUnit:
        """The inverse of ``dataclasses.asdict``; a list is as good as a tuple."""
        return MatrixUnit(**{**facts, "columns": tuple(facts["columns"])})

    @property
    def rows(self) -> int:
        """Of one instruction."""
        return ROWS * self.warps

    @property
    def threads(self) -> int:
        """That run it together."""
        return WARP * self.warps

    @property
    def piece(self) -> int:
        """Elements of a factor in ``PIECE_BYTES``; two such pieces are the steps of one instruction."""
        return self.steps // 2


def _warp(kind: str, factors: str, sums: str, steps: int, rate: int) -> MatrixUnit:
    return MatrixUnit(f"mma.m16n8k{steps}.{kind}", factors, sums, steps, 1, (COLUMNS,), from_shared=False, rate=rate)


def _warpgroup(kind: str, factors: str, sums: str, steps: int, rate: int) -> MatrixUnit:
    widths = (16, 32, 64, 128, 256)
    return MatrixUnit(f"wgmma.m64k{steps}.{kind}", factors, sums, steps, 4, widths, from_shared=True, rate=rate)


def _all(halves: int) -> tuple[MatrixUnit, ...]:
    """Those of a warp; ``halves``: products of float16 that begin in a cycle."""
    return (
        _warp("f16", "float16", "float32", 16, halves),
        _warp("bf16", "bfloat16", "float32", 16, halves),
        _warp("s8", "int8", "int32", 32, 2 * halves),
    )


#: Compute capability 8.0: NVIDIA A100 data sheet, 312 TFLOPS of float16 at 1.41 GHz on 108 multiprocessors.
AMPERE: Final = _all(1024)
#: 8.6 and 8.9: half of that a multiprocessor (NVIDIA Ampere GA102 and Ada whitepapers, sums in float32).
SMALL_AMPERE: Final = _all(512)
#: 9.0, what a warp does alone: about 0.63 of what warpgroups reach (Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU
#: Architecture, 2024).
HOPPER_WARP: Final = _all(1280)
#: 9.0 by machine code for it alone (sm_90a): NVIDIA H100 data sheet, 989 TFLOPS of float16 at 1.83 GHz on 132 multiprocessors.
HOPPER: Final = (
    _warpgroup("f16", "float16", "float32", 16, 2048),
    _warpgroup("bf16", "bfloat16", "float32", 16, 2048),
    _warpgroup("s8", "int8", "int32", 32, 4096),
    *HOPPER_WARP,
)
#: By name; their rates are those of one GPU or another.
UNITS: Final[Mapping[str, MatrixUnit]] = {unit.name: unit for unit in HOPPER}
