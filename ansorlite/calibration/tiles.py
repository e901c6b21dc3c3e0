"""Loops about a core's matrix units (:mod:`ansorlite.machine.amx`): products of tiles, loads and stores of tiles.

As in :mod:`ansorlite.calibration.core`, each function writes one turn and returns how many of the things that it is about one
turn has. Whole tiles are used, of zeros: what is in them changes nothing about the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ansorlite.calibration.core import Body
from ansorlite.calibration.loop import Loop
from ansorlite.codegen import matrix_tile
from ansorlite.machine import amx
from ansorlite.te.ops import BinaryOp

#: Registers of sums; the others are factors, half of them of either side.
_SUMS: Final = amx.REGISTERS // 2
#: Bytes of a row of a tile, which is as long as there are rows.
_ROW: Final = 4 * amx.ROWS


def bodies(op: BinaryOp) -> Mapping[str, Body]:
    """The loops by which tiles are measured, by the names of what they measure; products are those of ``op``."""

    def tile_product(loop: Loop) -> int:
        _begin(loop)
        for number in range(_SUMS):
            _multiply(loop, op, number)
        return _SUMS

    def tile_latency(loop: Loop) -> int:
        _begin(loop)
        for _ in range(_SUMS):
            _multiply(loop, op, 0)
        return _SUMS

    return {each.__name__: each for each in (tile_product, tile_latency, tile_load, tile_store)}


def tile_load(loop: Loop) -> int:
    return _moved(loop, "tileloadd64")


def tile_store(loop: Loop) -> int:
    return _moved(loop, "tilestored64")


def _begin(loop: Loop) -> None:
    matrix_tile.configure(loop.b, "whole_tiles", [(amx.ROWS, amx.ROWS)] * amx.REGISTERS)
    loop.at_end("call void @llvm.x86.tilerelease()")
    loop.b.module.declare("void @llvm.x86.tilerelease()")


def _multiply(loop: Loop, op: BinaryOp, total: int) -> None:
    """Add to the sums ``total`` the product of two factors."""
    left, right = _SUMS + total % 2, amx.REGISTERS - 1 - total // 2
    loop.b.call("void", f"llvm.x86.{matrix_tile.INSTRUCTIONS[op][0]}", *(("i8", str(each)) for each in (total, left, right)))


def _moved(loop: Loop, instruction: str) -> int:
    """Each register, to or from a tile of its own in the first cache."""
    _begin(loop)
    for number in range(amx.REGISTERS):
        place = loop.at(number * amx.ROWS * _ROW)
        loop.b.call("void", f"llvm.x86.{instruction}", ("i8", str(number)), ("ptr", place), ("i64", str(_ROW)))
    return amx.REGISTERS
