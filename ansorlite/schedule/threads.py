"""Where what the threads of a block compute is made: what they share, and what each of them has for itself.

The statements of a block are its threads': outside of the loops over these nothing may be computed, and nothing kept that is not
shared, or private to each of them.
"""

from __future__ import annotations

from ansorlite.columns.arithmetic import both, either, every, some
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import LoopKind
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.nest import Nest


def check_kept(nest: Nest, root: bool, conditions: Conditions) -> None:
    """The tile of a nest, if threads keep it from loop to loop, is made in their block, outside of the loops over them.

    Args:
        root: whether the nest is in no other one's loops.
    """
    if nest.epilogue is None or not nest.thread_loops:
        return
    blocks = [loop for loop in nest.loops if loop.bound is LoopKind.BLOCK]
    in_block = every(loop.band < nest.epilogue_at for loop in blocks) if blocks or not root else 0
    conditions.require(
        either(some(loop.band < nest.epilogue_at for loop in nest.thread_loops), in_block),
        f"the tile of stage {nest.anchor.name} is kept by threads, but the loops bound to block are not all around it; bind "
        f"loops that are around it to block, or copy it back inside of the loops bound to threads",
    )


def check_own(nest: Nest, name: str, at: Number, root: bool, conditions: Conditions) -> None:
    """What threads do not share is made by each of them, or outside of their block.

    Args:
        at: after how many bands of the nest it is made.
        root: whether the nest is in no other one's loops.
    """
    if not nest.thread_loops:
        return
    out_of_block = every(at <= loop.band for loop in nest.loops if loop.bound is LoopKind.BLOCK) if root else 0
    conditions.require(
        either(out_of_block, some(loop.band < at for loop in nest.thread_loops)),
        f"{name} is made in a block of {nest.anchor.name}, but by none of its threads: make it inside of the loops that are "
        f"bound to threads, or outside of those bound to block, or let the threads share it (scope='shared')",
    )


def check_shared(nest: Nest, name: str, at: Number, root: bool, together: Number, conditions: Conditions) -> None:
    """What the threads of a block share is made inside of some root loop, outside of those over threads, and by several of them.

    Args:
        at, root: as :func:`check_own` has them.
        together: whether several threads compute it, each a part.
    """
    if not root:
        raise ScheduleError(
            f"{name} is to be shared by the threads of a block, but {nest.anchor.name} is itself computed in another one's "
            f"loops: make {name} in those"
        )
    outside = every(at <= loop.band for loop in nest.loops if loop.bound not in (None, LoopKind.BLOCK))
    conditions.require(
        both(at > 0, outside),
        f"{name} is to be shared by the threads of a block: make it inside of a loop of {nest.anchor.name}, "
        f"outside of the loops that are bound to threads",
    )
    if nest.thread_loops:
        conditions.require(
            together,
            f"{name} is to be shared by the threads of a block, but none of its own loops is bound to threads: bind one of them",
        )
