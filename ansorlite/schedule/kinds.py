"""How the loops of a nest run: which are unrolled, which threads share, what is stored past the caches, and where that can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ansorlite.columns.arithmetic import both, ceil, either, equal, every, maximum, minimum, modulo, negated, product, where
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.loops.nodes import may_nest
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.fusing import runs
from ansorlite.schedule.nest import Loop, Nest
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Choose, evaluate
from ansorlite.schedule.structure import StageLoops, Tail
from ansorlite.schedule.walks import Walk
from ansorlite.te import dtypes
from ansorlite.te.expr import Axis, Reduce
from ansorlite.te.tensor import Tensor

#: Bytes that a streaming store's innermost loop writes in a row, at least: at both ends of a run a line is written in two parts.
SHORTEST_STREAM: Final = 256
_NONE: Final[Mapping[str, LoopRef]] = {}


def shared_loops(
    said: StageLoops,
    trips: Sequence[Number],
    stage: str,
    names: Sequence[str],
    choose: Choose,
    fused: Mapping[str, LoopRef] = _NONE,
) -> Number:
    """How many outermost loops are fused and parallel, not counting a last one of a single iteration."""
    shared, depth = said.parallel or ((), 0)
    there = [name for name in shared if name in names]
    if list(names[: len(there)]) != there:
        raise ScheduleError(
            f"the loops {', '.join(shared)} of stage {stage} are to be parallel, but the outermost ones are "
            f"{', '.join(names[: len(there)])}; reorder them"
        )
    if said.vector is not None and said.vector[0] in there:
        raise ScheduleError(f"loop {said.vector[0]} of stage {stage} cannot be both parallel and vectorized; split it in two")
    wish = evaluate(depth, choose)
    result: Number = 0
    together = runs(range(len(there)), map(fused.get, there))
    for number, run in enumerate(together):
        for position in run:
            result = where(both(number < wish, trips[position] > 1), position + 1, result)
    return result


def unrolled(
    loops: tuple[Loop, ...],
    said: StageLoops,
    cut: frozenset[str],
    mixed: frozenset[Axis],
    lanes: Number,
    parallel: Number,
    choose: Choose,
) -> tuple[tuple[Loop, ...], Number]:
    """Marks loops, from the innermost outward, while their straight-line code stays within the limit; and how many iterations
    of theirs are written out.

    A loop whose last run may be short stays a loop, and so does one that threads share.
    """
    names, wish = said.unrolled or ((), 0)
    shared = said.parallel[0] if said.parallel is not None else ()
    limit = evaluate(wish, choose)
    statements: Number = 1
    going: Number = limit > 0
    result = list(loops)
    for run in reversed(list(runs(range(len(loops)), (loop.fused for loop in loops)))):
        for position in reversed(run):
            loop = loops[position]
            vector = both(lanes > 1, position == len(loops) - 1)
            if loop.name not in names:
                statements = statements * where(vector, ceil(loop.trip / lanes), 1)
                continue
            statements = statements * where(vector, ceil(loop.trip / lanes), loop.trip)
            fixed = either(whole(loops, position, mixed), equal(loop.trip, 1)) if loop.name in cut else 1
            alone = parallel <= position if loop.name in shared else 1
            going = every((going, statements <= limit, either(fixed, vector), alone))
        for position in run if loops[run[0]].name in names else ():
            vector = both(lanes > 1, position == len(loops) - 1)
            result[position] = replace(loops[position], unrolled=every((going, loops[position].trip > 1, negated(vector))))
    written = product(where(loop.unrolled, loop.trip, 1) for loop in result)
    return tuple(result), minimum(written, maximum(limit, 1))


def streamed(wish: Number, stored: Tensor, loops: tuple[Loop, ...], lanes: Number) -> Number:
    """Whether what the innermost loop stores goes past the caches: by the line, so in vectors, and not in short runs."""
    if not loops or (isinstance(wish, int) and not wish):
        return 0
    long = loops[-1].trip * dtypes.size(stored.dtype) >= SHORTEST_STREAM
    return every((wish, lanes > 1, long))


def check_kinds(
    stage: str, said: StageLoops, loops: tuple[Loop, ...], cut: frozenset[str], mixed: frozenset[Axis], parallel: Number,
    conditions: Conditions,
) -> None:  # fmt: skip
    """Loops of which all iterations run at once, or as one loop, have as many of them in every run."""
    _check_guarded(stage, said, loops, cut, conditions)
    _check_fused(stage, said, loops, cut, conditions)
    _check_parallel(stage, said, loops, cut, parallel, conditions)
    _check_bound(stage, loops, cut, mixed, conditions)


def _check_guarded(stage: str, said: StageLoops, loops: tuple[Loop, ...], cut: frozenset[str], conditions: Conditions) -> None:
    """One condition holds for all lanes of a vector, unless these are masked."""
    if said.vector is None or said.vector[0] != loops[-1].name:
        return
    for loop in loops[:-1]:
        if loop.axis is loops[-1].axis and loop.name in cut and loop.guard is Tail.GUARD:
            whole_vectors = equal(modulo(loop.span, loops[-1].span), 0)
            conditions.require(
                either(equal(product((loop.trip, loop.step)), loop.span), whole_vectors),
                f"the last vectors of loop {loops[-1].name} of stage {stage} are beyond the end of loop {loop.name} in part: "
                f"split that with tail='mask'",
            )


def _check_fused(stage: str, said: StageLoops, loops: tuple[Loop, ...], cut: frozenset[str], conditions: Conditions) -> None:
    """Fused loops have the same iterations in every run, and walk one way where they run in vectors."""
    vectors = said.vector is not None and said.vector[0] == loops[-1].name
    for position, loop in enumerate(loops):
        if loop.fused is None:
            continue
        if loop.name in cut:
            conditions.require(
                steady(loops, position),
                f"loop {loop.fused} is fused, but its loop over {loop.axis.name} has fewer iterations in the last run of "
                f"another one; choose factors that divide the loops of {loop.axis.name}",
            )
        if loop.fused == loops[-1].fused and vectors and position < len(loops) - 1:
            conditions.require(
                equal(loop.trip, 1),
                f"loop {loop.fused} is vectorized, but walks several loops of stage {stage}; split it so that the innermost "
                f"loop walks {loops[-1].axis.name} alone, and vectorize that",
            )


def _check_parallel(
    stage: str, said: StageLoops, loops: tuple[Loop, ...], cut: frozenset[str], parallel: Number, conditions: Conditions
) -> None:
    """Loops that threads share are one, with the same iterations in every run."""
    shared = said.parallel[0] if said.parallel is not None else ()
    for position, loop in enumerate(loops):
        if loop.name in shared and loop.name in cut:
            conditions.require(
                either(parallel <= position, steady(loops, position)),
                f"loop {loop.name} of stage {stage} is parallel, but has fewer iterations in the last run of another loop "
                f"over {loop.axis.name}; choose factors that divide, or make the loops around it parallel alone",
            )


def _check_bound(
    stage: str, loops: tuple[Loop, ...], cut: frozenset[str], mixed: frozenset[Axis], conditions: Conditions
) -> None:
    """Loops that are bound nest as their machine has it, and have the same iterations in every run."""
    around: list[Loop] = []
    for position, loop in enumerate(loops):
        if loop.bound is None:
            continue
        between = loops[position - 1].name if position else ""
        beside = bool(around) and around[-1] is loops[position - 1] and around[-1].bound is loop.bound
        for outer in around:
            if outer.bound is loop.bound and not beside:
                raise ScheduleError(
                    f"loops {outer.name} and {loop.name} of stage {stage} are bound to {loop.bound.value}, but {between} is "
                    f"between them; reorder them side by side: they are fused"
                )
            if outer.bound is not None and outer.bound is not loop.bound and not may_nest(outer.bound, loop.bound):
                raise ScheduleError(
                    f"loop {loop.name} of stage {stage}, bound to {loop.bound.value}, is inside of loop {outer.name}, bound "
                    f"to {outer.bound.value}; reorder: block, vthread, then warp and lane, or thread, from the outermost in"
                )
        around.append(loop)
        if loop.name in cut:
            conditions.require(
                either(whole(loops, position, mixed), equal(loop.trip, 1)),
                f"loop {loop.name} of stage {stage} is bound to {loop.bound.value}, but its last run is short; "
                f"choose factors that divide the loops of {loop.axis.name}",
            )


def check_sums(nest: Nest, said: StageLoops, walks: Mapping[str, Walk], conditions: Conditions) -> None:
    """Independent iterations that are shifted onto one another do not add to one element in memory."""
    if nest.epilogue is not None or not isinstance(nest.anchor.body, Reduce):
        return
    shared = said.parallel[0] if said.parallel is not None else ()
    inner = nest.inner_reduction
    # Registers that are set at the start of a sum are moved to memory whole.
    moved = both(nest.promoted, nest.reduce_at >= inner) if inner is not None else 0
    for position, loop in enumerate(nest.loops):
        walk = walks[loop.name]
        if (loop.bound is None and loop.name not in shared) or walk.cut or walk.even:
            continue
        alone = nest.parallel <= position if loop.bound is None else 0
        conditions.require(
            either(either(equal(loop.trip * loop.step, loop.span), alone), moved),
            f"loop {loop.name} of stage {nest.anchor.name} walks {loop.span} elements in steps of {loop.step}: its last "
            f"iteration would add to elements of another one at the same time; choose factors that divide, or cache_write",
        )


def fused_in(stage: str, said: StageLoops, names: Sequence[str]) -> Mapping[str, LoopRef]:
    """By loop the fused one that it is a part of, if it is not all that is left of that."""
    there = [(fused, [part for part in fused.parts if part in names]) for fused in said.fused]
    return {part: LoopRef(stage, fused.name) for fused, parts in there if len(parts) > 1 for part in parts}


def whole(loops: tuple[Loop, ...], position: int, mixed: frozenset[Axis]) -> Number:
    """Whether a loop always runs its full trip, because every step around it and its own divides the span."""
    axis = loops[position].axis
    around = loops if axis in mixed else loops[: position + 1]
    return every(_ends(loop) for loop in around if loop.axis is axis)


def _ends(loop: Loop) -> Number:
    """Whether every iteration of a loop has all of its step before it, or runs as if it had."""
    return 1 if loop.guard is not None else equal(product((loop.trip, loop.step)), loop.span)


def steady(loops: tuple[Loop, ...], position: int) -> Number:
    """Whether a loop that is cut has as many iterations in every run: none that it is in ends early."""
    loop = loops[position]
    same = [other for other in loops if other.axis is loop.axis]
    result: Number = equal(loop.trip, 1)
    held: Number = 1
    for other in same:
        if other.depth <= loop.depth:
            still = every(equal(each.trip, 1) for each in same if each.depth >= other.depth and each in loops[:position])
            held = both(held, either(still, _ends(other)))
    return either(result, held)
