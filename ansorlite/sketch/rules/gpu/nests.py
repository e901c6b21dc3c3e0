"""What gives a stage blocks and threads, for the rules of GPUs to use."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.state import Bands
from ansorlite.sketch.tiling import split
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

#: Elements along an axis that one thread computes: accumulators are registers.
MAX_TILE = 16
#: Elements of a row that one thread computes one after another.
MAX_SERIAL = 64
#: Slots of the rings that shared copies are in.
STAGES = (1, 2, 3, 4, 5, 6)
#: Where copies land where they stand a thread has one step's copies in registers, besides.
STAGES_OF_REGISTERS = (1, 2)
#: Elements of a stage from which on a block may walk several of its own size.
MANY = 1 << 18


def real_axes(stage: Tensor) -> list[Axis]:
    """The space axes of more than one element; one of a stage of one element, to hang blocks and threads on."""
    return [axis for axis in stage.axes if axis.extent > 1] or list(stage.axes[-1:])


def lanes_of(target: Target, stage: Tensor) -> tuple[int, ...]:
    """How many elements one instruction may load or store: powers of two."""
    assert target.gpu is not None
    most = max(1, target.gpu.load_bytes // dtypes.size(stage.dtype))
    return tuple(1 << shift for shift in range(most.bit_length()) if 1 << shift <= most)


def bind(s: Schedule, loops: Sequence[LoopRef], to: str) -> None:
    """All of them to one thing, fused."""
    for loop in loops:
        s.bind(loop, to)


def copy_ahead(s: Schedule, stage: Tensor, loop: LoopRef, target: Target) -> None:
    """What the threads of a block share in each step of ``loop`` is copied some steps ahead, in rings."""
    assert target.gpu is not None
    stages = STAGES if target.gpu.async_copies else STAGES_OF_REGISTERS
    s.pipeline(loop, s.sample(stages, name=f"{stage.name}.stages"))


def elementwise_nest(s: Schedule, stage: Tensor, target: Target) -> dict[str, Bands]:
    """Each element apart: blocks, threads, and a few elements a thread, those along the last axis in vectors.

    Of very many elements a block computes some such tiles, one after the other along the longest axis: fewer blocks then start.
    """
    assert target.gpu is not None
    axes = real_axes(stage)
    walked = max(axes, key=lambda axis: axis.extent) if prod(stage.shape) >= MANY else None
    most = (None, MAX_SERIAL, target.gpu.block_threads, MAX_TILE)
    parts = {axis: split(s, stage, axis, 3, False, MAX_TILE) for axis in axes if axis is not walked}
    if walked is None:
        return _ordered(s, stage, target, [[parts[axis][level] for axis in axes] for level in range(3)], (0, 1))
    block, serial, *rest = split(s, stage, walked, 4, False, MAX_TILE, most)
    parts[walked] = (block, *rest)
    blocks, threads, each = ([parts[axis][level] for axis in axes] for level in range(3))
    return _ordered(s, stage, target, [blocks, [serial], threads, each], (0, 2))


def row_nest(s: Schedule, stage: Tensor, rows: Sequence[Axis], target: Target) -> dict[str, Bands]:
    """Whole rows to a block: of the other axes no part is another block's."""
    blocks: list[LoopRef] = []
    serial: list[LoopRef] = []
    threads: list[LoopRef] = []
    each: list[LoopRef] = []
    for axis in real_axes(stage):
        if axis in rows:
            outer, inner = split(s, stage, axis, 2, False, prod(axis.extent for axis in stage.axes))
            blocks.append(outer)
            threads.append(inner)
        else:
            outer, thread, inner = split(s, stage, axis, 3, False, MAX_TILE)
            serial.append(outer)
            threads.append(thread)
            each.append(inner)
    return _ordered(s, stage, target, [blocks, serial, threads, each], (0, 2))


def _ordered(
    s: Schedule, stage: Tensor, target: Target, bands: Sequence[Sequence[LoopRef]], bound: tuple[int, int]
) -> dict[str, Bands]:
    loops = [loop for band in bands for loop in band]
    s.reorder(*loops)
    blocks, threads = bound
    bind(s, bands[blocks], "block")
    bind(s, bands[threads], "thread")
    if bands[-1]:
        s.vectorize(bands[-1][-1], lanes=s.sample(lanes_of(target, stage), name=f"{stage.name}.lanes"))
        s.unroll(bands[-1], max_steps=MAX_TILE * 4)
    return {stage.name: tuple(map(tuple, bands))}
