"""Where the accumulators of a nest start, and the memory that they are in."""

from __future__ import annotations

from collections.abc import Mapping

from ansorlite.columns.arithmetic import either, every
from ansorlite.columns.tape import Column, Number, bounds
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import LoopKind, Scope
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.nest import Nest
from ansorlite.schedule.structure import Location, StageLoops, places
from ansorlite.schedule.walks import Walk
from ansorlite.te.tensor import Tensor


def check_starts(anchor: Tensor, said: StageLoops, walks: Mapping[str, Walk], at: Location) -> None:
    """Accumulators start outside of all loops that add up: inside of one they would lose what was added.

    Raises:
        ScheduleError: one of the places is inside of such a loop.
    """
    for loop in places(at):
        if loop is None:
            continue
        around = said.loops[: said.loops.index(loop.name) + 1]
        adds = next((name for name in around if walks[name].reduce), None)
        if adds is not None:
            raise ScheduleError(
                f"the accumulators of stage {anchor.name} cannot start inside of loop {loop.name}: loop {adds} adds up "
                f"{'there' if adds == loop.name else 'around it'}, and they would start again in each of its iterations; "
                f"name a loop outside of {adds}, or None"
            )


def in_scope(nest: Nest) -> Number:
    """Flag: whether what the nest computes can be in the memory that it was said to be in.

    Raises:
        ScheduleError: it cannot, whatever is chosen.
    """
    name, scope = nest.anchor.name, nest.scope
    if scope in (Scope.REGISTER, Scope.LOCAL) and nest.epilogue is None:
        raise ScheduleError(
            f"stage {name} is to be in {scope.name.lower()} memory, but nothing copies it from there in its loops: "
            f"name a loop for that (cache_write with at=, or reverse_compute_at)"
        )
    if scope is Scope.GLOBAL and nest.epilogue is not None:
        raise ScheduleError(f"stage {name} is to be in global memory, whole, but {nest.epilogue.name} follows it in its loops")
    if scope is not Scope.REGISTER:
        return 1
    straight = nest.tile_is_constant
    if isinstance(straight, Column) or straight:
        return straight
    # With samples, what is so whatever is chosen.
    tile = (number for number, loop in enumerate(nest.loops) if not loop.reduce and bounds(loop.band >= nest.epilogue_at)[1])
    loops = ", ".join(nest.loops[number].name for number in tile if not bounds(nest.expanded(number))[1])
    raise ScheduleError(
        f"stage {name} is to be in registers, but of the loops over its tile {loops or 'some'} are no straight-line code; "
        f"unroll or vectorize them, or copy the tile back further in"
    )


def check_threads(nest: Nest, root: bool, conditions: Conditions) -> None:
    """What threads of a GPU keep from loop to loop belongs to them: it is made in their block, outside of the loops over them.

    Args:
        root: whether the nest is in no other one's loops.
    """
    threads = [loop for loop in nest.loops if loop.bound is LoopKind.THREAD]
    blocks = [loop for loop in nest.loops if loop.bound is LoopKind.BLOCK]
    if nest.epilogue is None or not threads:
        return
    inside = every(loop.band < nest.epilogue_at for loop in blocks) if blocks or not root else 0
    conditions.require(
        either(every(loop.band < nest.epilogue_at for loop in threads), inside),
        f"the tile of stage {nest.anchor.name} is kept by threads, but the loops bound to block are not all around it; bind "
        f"loops that are around it to block, or copy it back inside of the loops bound to thread",
    )
