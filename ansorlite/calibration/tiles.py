"""Loops about a core's matrix units (:mod:`ansorlite.machine.amx`): products of tiles, loads of tiles, and sums that are moved.

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
#: Bytes of a row of a tile, which is as long as there are rows, and of a tile.
_ROW: Final = 4 * amx.ROWS
_TILE: Final = _ROW * amx.ROWS
#: Products that are added to each sum before it is stored.
STEPS: Final = 4


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

    def tile_moved(loop: Loop) -> int:
        """Sums, more than the first cache holds, that are loaded, have :data:`STEPS` products added to each, and are stored."""
        _begin(loop)
        for place in range(amx.REGISTERS * _TILE, loop.target.l1 + (amx.REGISTERS + _SUMS) * _TILE, _SUMS * _TILE):
            for number in range(_SUMS):
                _move(loop, "tileloadd64", number, place + number * _TILE)
            for _ in range(STEPS):
                for number in range(_SUMS, amx.REGISTERS):
                    _move(loop, "tileloadd64", number, number * _TILE)
                for number in range(_SUMS):
                    _multiply(loop, op, number)
            for number in range(_SUMS):
                _move(loop, "tilestored64", number, place + number * _TILE)
        return loop.target.l1 // _TILE + _SUMS

    return {each.__name__: each for each in (tile_product, tile_latency, tile_load, tile_moved)}


def tile_load(loop: Loop) -> int:
    """Each register, from a tile of its own in the first cache."""
    _begin(loop)
    for number in range(amx.REGISTERS):
        _move(loop, "tileloadd64", number, number * _TILE)
    return amx.REGISTERS


def _begin(loop: Loop) -> None:
    matrix_tile.configure(loop.b, "whole_tiles", [(amx.ROWS, amx.ROWS)] * amx.REGISTERS)
    loop.at_end("call void @llvm.x86.tilerelease()")
    loop.b.module.declare("void @llvm.x86.tilerelease()")


def _multiply(loop: Loop, op: BinaryOp, total: int) -> None:
    """Add to the sums ``total`` the product of two factors."""
    left, right = _SUMS + total % 2, amx.REGISTERS - 1 - total // 2
    loop.b.call("void", f"llvm.x86.{matrix_tile.INSTRUCTIONS[op][0]}", *(("i8", str(each)) for each in (total, left, right)))


def _move(loop: Loop, instruction: str, number: int, place: int) -> None:
    """A register, to or from so many bytes behind the head."""
    loop.b.call("void", f"llvm.x86.{instruction}", ("i8", str(number)), ("ptr", loop.at(place)), ("i64", str(_ROW)))
