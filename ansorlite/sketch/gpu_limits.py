"""What GPUs set limits to, in numbers of a program: of one row, or of a population (Ansor's VerifyGPUCode, before lowering).

Each number is the largest of all launches: of the nests at the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.columns.arithmetic import ceil, floor, maximum, minimum, product, total, where
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import LoopKind
from ansorlite.machine.gpu import Gpu
from ansorlite.schedule.nest import Attached, Nest, Program
from ansorlite.sketch.constraint import Constraint
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Reduce

#: Buffers in shared memory begin at multiples of so many bytes.
_ALIGNED: Final = 64
#: Registers of a thread besides its accumulators and operands: addresses, and counts of loops.
_OVERHEAD: Final = 24
#: Groups of threads that are joined without shared memory.
_WARP: Final = 32
#: Fewer threads of a block than that use next to nothing of a multiprocessor; where there is as much to do.
_FEWEST: Final = 16
#: Of one launch, in a row.
_MOST_BLOCKS: Final = (1 << 31) - 1


def threads(nest: Nest) -> Number:
    """Of a block: as many as the widest of its phases has."""
    return _largest([nest.threads, *(stage.dealt for stage in nest.attached)])


def blocks(nest: Nest) -> Number:
    """Of a launch."""
    return product([1, *(loop.trip for loop in nest.loops if loop.bound is LoopKind.BLOCK)])


def shared_bytes(program: Program, nest: Nest) -> Number:
    """Of a block."""
    return total([0, *(_stage_bytes(program, stage) for stage in nest.attached if stage.shared)])


def registers(nest: Nest) -> Number:
    """An estimate for one thread: its accumulators, the operands of one step, and what addresses take."""
    anchor = nest.anchor
    words = max(1, dtypes.size(anchor.dtype) // 4)
    inside = [loop for loop in nest.loops if loop.bound is None and loop.band >= nest.last_space and not loop.reduce]
    if not isinstance(anchor.body, Reduce):
        return _OVERHEAD + product([2 * words, *(loop.trip for loop in inside)])
    return _OVERHEAD + words * (product([1, *(loop.trip for loop in inside)]) + total([0, *(loop.trip for loop in inside)]))


def _stage_bytes(program: Program, stage: Attached) -> Number:
    item = dtypes.size(stage.tensor.dtype)
    elements: Number = 1
    pads = program.pads.get(stage.tensor, (0,) * len(stage.lengths))
    for dim, (length, pad) in enumerate(zip(reversed(stage.lengths), reversed(pads), strict=True)):
        elements = elements * length + (pad if dim + 1 < len(stage.lengths) else 0)
    found = _aligned(elements * item)
    if stage.tensor.reduce_axes:
        # A row for what warps have.
        found = found + where(stage.lanes > _WARP, _aligned(floor(stage.dealt / _WARP) * item), 0)
    return found * stage.slots


def _aligned(nbytes: Number) -> Number:
    return ceil(nbytes / _ALIGNED) * _ALIGNED


def _largest(numbers: list[Number]) -> Number:
    most: Number = 0
    for number in numbers:
        most = maximum(most, number)
    return most


def _of_gpu(fact: Callable[[Gpu], float]) -> Callable[[Target], float]:
    def most(target: Target) -> float:
        assert target.gpu is not None
        return fact(target.gpu)

    return most


def _over_nests(number: Callable[[Program, Nest], Number]) -> Callable[[Program, Target], Number]:
    return lambda program, _: _largest([number(program, nest) for nest in program.nests])


def _wanting(_: Program, nest: Nest) -> Number:
    """By how much there are fewer threads than would have something to do, up to a few."""
    if not any(loop.bound is LoopKind.THREAD for loop in nest.loops):
        return 0
    return minimum(product(nest.extents[axis] for axis in nest.anchor.axes), _FEWEST) - threads(nest)


GPU_CONSTRAINTS: Final = (
    Constraint("threads of a block", _over_nests(lambda _, nest: threads(nest)), _of_gpu(lambda gpu: gpu.block_threads)),
    Constraint("bytes of a block's shared memory", _over_nests(shared_bytes), _of_gpu(lambda gpu: gpu.block_shared)),
    Constraint("registers of a thread", _over_nests(lambda _, nest: registers(nest)), _of_gpu(lambda gpu: gpu.thread_registers)),
    Constraint(
        "registers of a block",
        _over_nests(lambda _, nest: registers(nest) * threads(nest)),
        _of_gpu(lambda gpu: gpu.registers),
    ),
    Constraint("blocks of a launch", _over_nests(lambda _, nest: blocks(nest)), lambda _: _MOST_BLOCKS),
    Constraint("threads of a block that are missing", _over_nests(_wanting), lambda _: 0),
)
