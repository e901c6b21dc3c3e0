"""What GPUs set limits to, in numbers of a program: of one row, or of a population (Ansor's VerifyGPUCode, before lowering).

Each number is the largest of all launches: of the nests at the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ansorlite.analysis.access import Access, accesses
from ansorlite.columns.arithmetic import both, ceil, floor, maximum, minimum, product, total, where
from ansorlite.columns.tape import Number
from ansorlite.loops.nodes import THREADS, LoopKind
from ansorlite.machine.gpu import Gpu
from ansorlite.machine.matrix import WARP, WORDS_OF_COLUMNS, WORDS_OF_ROWS
from ansorlite.schedule.lower_dealt import WRITTEN_OUT
from ansorlite.schedule.nest import Attached, Multiplied, Nest, Program
from ansorlite.sketch.constraint import Constraint
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Reduce
from ansorlite.te.tensor import Tensor

#: Buffers in shared memory begin at multiples of so many bytes.
_ALIGNED: Final = 64
#: Registers of a thread besides its accumulators and operands: addresses, and counts of loops.
OVERHEAD: Final = 24
#: Bytes of a register.
_WORD: Final = 4
#: How many threads may add up one element.
REDUCE_LANES: Final = (1, 4, 8, 16, 32, 64, 128, 256)
#: Fewer threads of a block than that use next to nothing of a multiprocessor; where there is as much to do.
_FEWEST: Final = 16
#: Of a thread (Ansor).
MOST_VIRTUAL: Final = 8
#: Of one launch, in a row.
_MOST_BLOCKS: Final = (1 << 31) - 1


def threads(nest: Nest) -> Number:
    """Of a block: as many as the widest of its phases has. Warps are whole, however few lanes have something to do."""
    warps = [loop.trip for loop in nest.loops if loop.bound is LoopKind.WARP]
    own = product([WARP, *warps]) if warps else nest.threads
    return _largest([own, *(stage.dealt for stage in nest.attached)])


def first_thread(nest: Nest) -> int:
    """The position of the first loop that is bound to threads; without one, behind those that are bound to blocks."""
    kinds = [loop.bound for loop in nest.loops]
    return next((depth for depth, kind in enumerate(kinds) if kind in THREADS), kinds.count(LoopKind.BLOCK))


def virtual_threads(nest: Nest) -> Number:
    """Tiles of a thread that are apart: iterations inside of the loops over threads, over a level of an axis before theirs."""
    outermost = {loop.axis: loop.depth for loop in reversed(nest.thread_loops)}
    inside = (loop for loop in nest.loops[first_thread(nest) :] if loop.bound is None and not loop.reduce)
    return product([1, *(loop.trip for loop in inside if loop.depth < outermost.get(loop.axis, 0))])


def blocks(nest: Nest) -> Number:
    """Of a launch."""
    return product([1, *(loop.trip for loop in nest.loops if loop.bound is LoopKind.BLOCK)])


def shared_bytes(program: Program, nest: Nest) -> Number:
    """Of a block."""
    return total([0, *(_stage_bytes(program, stage) for stage in nest.attached if stage.shared)])


def registers(nest: Nest, gpu: Gpu) -> Number:
    """An estimate for one thread: what it keeps from phase to phase, what it has at hand in the fullest one, and addresses.

    Where copies do not land later, what is copied ahead is kept while a step computes (``loops/through_registers.py``).
    """
    kept: Number = 0
    ahead: Number = 0
    held: list[Number] = []
    run, words = written_out(nest), _words(nest.anchor)
    if isinstance(nest.anchor.body, Reduce):
        kept = words * accumulators(nest)
    if nest.multiplied is not None:
        # Of what units read in shared memory themselves nothing.
        held.append(0 if nest.multiplied.unit.from_shared else total(factor_words(nest, nest.multiplied).values()))
    elif isinstance(nest.anchor.body, Reduce):
        held.append(words * total(_operand(nest, access, run) for access in accesses(nest.anchor)))
    else:
        held.append(2 * words * nest.lanes)
    if nest.epilogue is not None:
        held.append(2 * _words(nest.epilogue) * nest.lanes)
    for stage in nest.attached:
        if stage.prepared:
            continue
        words = _words(stage.tensor)
        if stage.tensor.reduce_axes:
            kept = maximum(kept, words)
            held.append(words)
        else:
            once = ceil(stage.lanes * dtypes.size(stage.tensor.dtype) / _WORD)
            held.append(once * where(rounds(stage) <= WRITTEN_OUT, rounds(stage), 1))
            if not gpu.async_copies:
                ahead = ahead + where(stage.slots > 1, once * rounds(stage), 0)
    return OVERHEAD + kept + ahead + _largest(held)


def most_registers(program: Program, gpu: Gpu) -> Number:
    """Of a thread, in the launch that takes most."""
    return _largest([registers(nest, gpu) for nest in program.nests if not nest.prepared])


def accumulators(nest: Nest) -> Number:
    """Elements of a sum that one thread keeps."""
    at = nest.epilogue_at if nest.epilogue is not None else nest.last_space
    kept = [where(loop.band >= at, loop.trip, 1) for loop in nest.loops if loop.bound is None and not loop.reduce]
    return product([1, *kept])


def written_out(nest: Nest) -> list[Number]:
    """By loop, outermost first: flag: whether it is of the innermost run of loops that are straight-line code."""
    going: Number = 1
    found: list[Number] = []
    for position in reversed(range(len(nest.loops))):
        going = both(going, nest.expanded(position))
        found.append(going)
    return found[::-1]


def rounds(stage: Attached) -> Number:
    """In how many rounds the threads of a block deal out what they compute element by element."""
    return ceil(product([1, *stage.lengths]) / (stage.lanes * maximum(stage.dealt, 1)))


def _operand(nest: Nest, access: Access, run: list[Number]) -> Number:
    """Elements of what is read that one step of a tile has at hand."""
    loops = zip(nest.loops, run, strict=True)
    return product([1, *(where(flag, loop.trip, 1) for loop, flag in loops if loop.axis in access.axes and not loop.reduce)])


def _words(tensor: Tensor) -> int:
    """Registers of an element."""
    return max(1, dtypes.size(tensor.dtype) // 4)


def factor_words(nest: Nest, by: Multiplied) -> dict[Axis, Number]:
    """Words that a lane gives of both factors, for all tiles of a thread and one step of a matrix unit; by the axis of the tiles.

    Of columns all warps that run a unit together give the same.
    """
    tiles = {by.row: WORDS_OF_ROWS, by.column: WORDS_OF_COLUMNS}
    loops = [loop for loop in nest.loops if loop.bound is None and loop.band >= nest.last_space and not loop.reduce]
    return {
        axis: product([words, *(where(loop.step >= by.least(axis), loop.trip, 1) for loop in loops if loop.axis is axis)])
        for axis, words in tiles.items()
    }


def _stage_bytes(program: Program, stage: Attached) -> Number:
    item = dtypes.size(stage.tensor.dtype)
    elements: Number = 1
    pads = program.pads.get(stage.tensor, (0,) * len(stage.lengths))
    for dim, (length, pad) in enumerate(zip(reversed(stage.lengths), reversed(pads), strict=True)):
        elements = elements * length + (pad if dim + 1 < len(stage.lengths) else 0)
    found = _aligned(elements * item)
    if stage.tensor.reduce_axes:
        # A row for what warps have.
        found = found + where(stage.lanes > WARP, _aligned(floor(stage.dealt / WARP) * item), 0)
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


def _of_registers(number: Callable[[Nest, Gpu], Number]) -> Callable[[Program, Target], Number]:
    def most(program: Program, target: Target) -> Number:
        assert target.gpu is not None
        return _largest([number(nest, target.gpu) for nest in program.nests])

    return most


def _wanting(_: Program, nest: Nest) -> Number:
    """By how much there are fewer threads than would have something to do, up to a few."""
    if not nest.thread_loops:
        return 0
    tasks = [product(nest.extents[axis] for axis in nest.anchor.axes)]
    for stage in nest.attached:
        if stage.shared and stage.lane_axis is not None and stage.lane_axis.reduce:
            # So many may add up one element.
            tasks.append(max(count for count in REDUCE_LANES if count <= stage.lane_axis.extent))
    return minimum(_largest(tasks), _FEWEST) - threads(nest)


GPU_CONSTRAINTS: Final = (
    Constraint("threads of a block", _over_nests(lambda _, nest: threads(nest)), _of_gpu(lambda gpu: gpu.block_threads)),
    Constraint("bytes of a block's shared memory", _over_nests(shared_bytes), _of_gpu(lambda gpu: gpu.block_shared)),
    Constraint("registers of a thread", _of_registers(registers), _of_gpu(lambda gpu: gpu.thread_registers)),
    Constraint(
        "registers of a block",
        _of_registers(lambda nest, gpu: registers(nest, gpu) * threads(nest)),
        _of_gpu(lambda gpu: gpu.registers),
    ),
    Constraint("blocks of a launch", _over_nests(lambda _, nest: blocks(nest)), lambda _: _MOST_BLOCKS),
    Constraint("virtual threads", _over_nests(lambda _, nest: virtual_threads(nest)), lambda _: MOST_VIRTUAL),
    Constraint("threads of a block that are missing", _over_nests(_wanting), lambda _: 0),
)
