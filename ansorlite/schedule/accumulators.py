"""Where the accumulators of a nest start, and the memory that they are in."""

from __future__ import annotations

from collections.abc import Mapping

from ansorlite.columns.tape import Column, Number, bounds
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import Scope
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
