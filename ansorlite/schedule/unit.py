"""Nests whose innermost loops are one instruction of a matrix unit."""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.analysis.matrix import MatrixProduct, matrix_product, tile_axis
from ansorlite.columns.arithmetic import both, either, equal, every, product
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import LoopKind
from ansorlite.machine.matrix import COLUMNS, HELD_ACROSS, HELD_DOWN, LANES_ACROSS, LANES_DOWN, UNITS, MatrixUnit
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.nest import Loop, Multiplied
from ansorlite.schedule.structure import StageLoops
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor


def product_by(anchor: Tensor, unit: MatrixUnit) -> MatrixProduct:
    """How ``anchor`` is a product of matrices in the form that ``unit`` takes.

    Raises:
        ScheduleError: it is not.
    """
    how = matrix_product(anchor, unit.factors, unit.sums)
    if how is None or len(how.inner) != 2 or how.inner[1].extent != unit.piece:
        raise ScheduleError(
            f"stage {anchor.name} is no product of matrices of {unit.factors} in {unit.sums}, in pieces of {unit.piece} steps: "
            f"it became another one after matrix_unit"
        )
    return how


def multiplied(
    anchor: Tensor, said: StageLoops, loops: Sequence[Loop], followed: bool, conditions: Conditions
) -> Multiplied | None:
    """What a matrix unit does of a nest; ``None`` where none was asked for.

    Args:
        followed: whether another stage takes the sums from the threads.

    Raises:
        ScheduleError: the loops are not those of the unit.
    """
    if said.unit is None:
        return None
    unit = UNITS[said.unit]
    how = product_by(anchor, unit)
    row, column = tile_axis(how.rows), tile_axis(how.columns)
    what = f"stage {anchor.name} is multiplied by {unit.name}"
    if not followed:
        raise ScheduleError(f"{what}: its sums are in registers; let another stage follow it (cache_write, reverse_compute_at)")
    thread = LoopKind.THREAD
    down: list[tuple[int, LoopKind | None]] = [(LANES_DOWN, thread), (HELD_DOWN, None)]
    if unit.warps > 1:
        down.append((unit.warps, thread))
    lanes = _levels(what, loops, row, down, conditions)
    across = _levels(what, loops, column, [(HELD_ACROSS, None), (LANES_ACROSS, thread)], conditions)
    _levels(what, loops, how.inner[0], [(2, None)], conditions)
    _levels(what, loops, how.inner[1], [(unit.piece, None)], conditions)
    wanted = [*([lanes[2]] if unit.warps > 1 else []), lanes[0], across[1]]
    threads = [loop for loop in loops if loop.bound is thread]
    if threads[-len(wanted) :] != wanted:
        order = ", ".join(loop.name for loop in wanted)
        raise ScheduleError(f"{what}: the innermost of the loops bound to thread must be {order}; reorder them")
    for loop in loops:
        if loop.band > threads[-1].band and not loop.reduce and loop.axis not in (row, column):
            conditions.require(equal(loop.trip, 1), f"{what}: loop {loop.name} is inside of those over threads; move it outside")
    if unit.from_shared:
        # One instruction has all columns of a thread's tile.
        others = [loop for loop in loops if loop.axis is column and loop.band > threads[-1].band and loop not in across]
        wide = product([COLUMNS, *(loop.trip for loop in others)])
        fits: Number = 0
        for columns in unit.columns:
            fits = either(fits, equal(wide, columns))
        whole = every(equal(product((loop.trip, loop.step)), loop.span) for loop in others)
        conditions.require(
            both(fits, whole),
            f"{what}, which has {', '.join(map(str, unit.columns))} columns; let the tile have one of these, which divides it",
        )
    return Multiplied(unit, row, column)


def _levels(
    what: str, loops: Sequence[Loop], axis: Axis, wanted: Sequence[tuple[int, LoopKind | None]], conditions: Conditions
) -> list[Loop]:
    """The innermost levels of an axis, from the innermost out: each of so many iterations, and bound so."""
    levels = sorted((loop for loop in loops if loop.axis is axis), key=lambda loop: -loop.depth)
    told = ", ".join(str(trip) for trip, _ in reversed(wanted))
    problem = f"{what}: the innermost loops over {axis.name} must have {told} iterations"
    if len(levels) < len(wanted):
        raise ScheduleError(f"{problem}; split {axis.name}")
    for loop, (trip, bound) in zip(levels, wanted, strict=False):
        if loop.bound is not bound:
            raise ScheduleError(f"{what}: loop {loop.name} must be bound to {'nothing' if bound is None else bound.value}")
        conditions.require(equal(loop.trip, trip), f"{problem}; {loop.name} has others")
        if loop.guard is not None:
            raise ScheduleError(f"{what}: loop {loop.name} cannot end early; leave out tail= of {axis.name}")
    return levels[: len(wanted)]
