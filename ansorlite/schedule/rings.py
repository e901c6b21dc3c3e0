"""Loops that copy ahead: which of the stages that threads share become rings, and of how many slots."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ansorlite.columns.arithmetic import either, equal, minimum, product, where
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import LoopKind
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.kinds import steady
from ansorlite.schedule.nest import Attached, Nest, Ring
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Choose, evaluate
from ansorlite.schedule.structure import StageLoops, Structure, places
from ansorlite.te.tensor import Tensor


def ring(
    nest: Nest,
    said: StageLoops,
    structure: Structure,
    inside: Collection[Tensor],
    here: int,
    choose: Choose,
    conditions: Conditions,
) -> Nest:
    """``nest`` with the ring that was asked for (``pipeline``), and the stages of whose parts it is made.

    Args:
        inside: all that is computed in the nest.
        here: how many bands are around what is computed right inside of the loop.

    Raises:
        ScheduleError: there can be none, whatever is chosen.
    """
    assert said.pipelined is not None
    name, wish = said.pipelined
    anchor = nest.anchor.name
    position = next(number for number, loop in enumerate(nest.loops) if loop.name == name)
    loop = nest.loops[position]
    what = f"loop {name} of stage {anchor} is pipelined"
    _check_place(nest, position, what)
    if any(ahead.loop == name for ahead in said.prefetched):
        raise ScheduleError(f"{what}, and asks for what its later iterations read (prefetch), too; leave out one")
    chosen = [stage for stage in nest.attached if _copied_at(structure, stage, LoopRef(anchor, name), inside)]
    if not chosen:
        raise ScheduleError(
            f"{what}, but nothing that threads share is copied in it: copy what it reads there (cache_read with layout='plain', "
            f"at= that loop, and scope='shared'); a CPU is asked to bring in what comes next (prefetch)"
        )
    together = _together(nest, position)
    conditions.require(nest.parallel <= position, f"{what}, but threads share its iterations; name a loop inside of those")
    for number in together:
        if nest.loops[number].name in nest.cut:
            conditions.require(
                steady(nest.loops, number),
                f"{what}, but has fewer iterations in the last run of another loop over {loop.axis.name}; choose factors that "
                f"divide",
            )
    stages = minimum(evaluate(wish, choose), product(nest.loops[number].trip for number in together))
    slots = {stage: where(equal(stage.at, here), stages, 1) for stage in chosen}
    some: Number = 0
    for stage in chosen:
        some = either(some, equal(stage.at, here))
    attached = tuple(replace(stage, slots=slots[stage]) if stage in slots else stage for stage in nest.attached)
    return replace(nest, attached=attached, ring=Ring(tuple(together), where(some, stages, 1)))


def _together(nest: Nest, position: int) -> list[int]:
    """The loops that run as one with the loop at ``position``."""
    fused = nest.loops[position].fused
    return [n for n, loop in enumerate(nest.loops) if n == position or (fused is not None and loop.fused == fused)]


def _check_place(nest: Nest, position: int, what: str) -> None:
    """A block copies ahead for its threads: in a loop inside of those over blocks, and outside of those over threads."""
    bound = [loop.bound for loop in nest.loops]
    if LoopKind.BLOCK not in bound[:position] or LoopKind.BLOCK in bound[position:]:
        raise ScheduleError(f"{what}, but is not inside of loops that are bound to block: bind those around it")
    threads: Sequence[LoopKind | None] = [kind for kind in bound[position:] if kind not in (None, LoopKind.BLOCK)]
    around = [kind for kind in bound[:position] if kind not in (None, LoopKind.BLOCK)]
    if around or not threads:
        raise ScheduleError(f"{what}, but the loops bound to threads are not inside of it; reorder them behind it")


def _copied_at(structure: Structure, stage: Attached, loop: LoopRef, inside: Collection[Tensor]) -> bool:
    """Whether a stage may be made there by all threads, from what is there before the loop."""
    if not stage.shared or stage.nest is not None or stage.tensor.reduce_axes:
        return False
    own = structure.loops(stage.tensor.name)
    alone = not any(producer in inside for producer in structure.dag.producers(stage.tensor))
    return alone and loop in places(own.at)
