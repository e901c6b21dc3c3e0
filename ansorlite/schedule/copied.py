"""What a nest reads from copies of its own, and what it asks for ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorlite.analysis.access import accesses, axes_of
from ansorlite.analysis.constants import follows_from_constants
from ansorlite.analysis.predicates import fetchable
from ansorlite.columns.arithmetic import both, equal, every, maximum, minimum, modulo, some, where
from ansorlite.columns.tape import Number
from ansorlite.errors import ScheduleError
from ansorlite.once import once_for_each
from ansorlite.schedule.conditions import Conditions
from ansorlite.schedule.nest import Attached, Fetched, Nest, Packed
from ansorlite.schedule.packing import copy_loops
from ansorlite.schedule.padding import wanted
from ansorlite.schedule.samples import Choose, evaluate
from ansorlite.schedule.structure import Ahead, Copied, Location, StageLoops
from ansorlite.schedule.threads import check_own, check_shared
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Expr
from ansorlite.te.tensor import Tensor
from ansorlite.te.traversal import free_vars, reads, substitute


def packed(
    dag: ComputeDAG,
    nest: Nest,
    tensor: Tensor,
    copied: Copied,
    attached: Sequence[Attached],
    place: Callable[[Location], Number],
    choose: Choose,
    conditions: Conditions,
    root: bool,
) -> Packed:
    """The copy of ``tensor`` that a nest reads.

    Args:
        attached: what is computed inside of the nest.
        place: of a location, how many bands are around it.
        root: whether the nest is at the root.
    """
    copy = _copy(nest.anchor, tensor, copied.name, copied.computed)
    assert copy.body is not None
    # What one box reads is copied with it, in every call.
    prepared = root and follows_from_constants(dag, copy.body)
    # What is computed inside of the nest can be copied no further out than there.
    there: Number = next((stage.at for stage in attached if stage.tensor is tensor), 0)
    at = 0 if prepared else maximum(place(copied.at), there)
    if copied.shared:
        check_shared(nest, copied.name, at, root, some(loop.axis in copy.axes for loop in nest.thread_loops), conditions)
    elif not prepared:
        check_own(nest, copied.name, at, root, conditions)
    wishes = wanted(copied.aligned, choose)
    pads: dict[str, Number] = {}
    stride: Number = 1
    for loop in reversed(nest.loops) if wishes else ():
        inside = both(at <= loop.band, loop.axis in copy.axes)
        if loop.name in wishes:
            factor, offset = wishes[loop.name]
            # Of loops of one iteration there is no dimension; and neighbours along the innermost one lie side by side.
            there = every((inside, loop.trip > 1, stride > 1))
            pads[loop.name] = where(there, modulo(offset - stride, factor), 0)
            stride = stride + pads[loop.name]
        stride = stride * where(inside, loop.trip, 1)
    return Packed(tensor, copy, at, prepared, copied.shared, pads, *copy_loops(nest, copy, at, prepared, pads))


def fetched(
    nest: Nest, said: StageLoops, ahead: Ahead, attached: Sequence[Attached], choose: Choose, conditions: Conditions
) -> Fetched:
    """What a nest asks for ahead."""
    read = [access for access in accesses(nest.anchor) if access.tensor.name == ahead.tensor]
    if len(read) != 1 or not fetchable(read[0]):
        raise ScheduleError(
            f"stage {nest.anchor.name} reads {ahead.tensor} in another way than when it was to be asked for ahead; "
            f"rewrite the computation before prefetch"
        )
    tensor = read[0].tensor
    position = next(number for number, loop in enumerate(nest.loops) if loop.name == ahead.loop)
    loop = nest.loops[position]
    what = f"{tensor.name} cannot be asked for ahead in loop {ahead.loop} of stage {nest.anchor.name}"
    if loop.bound is not None or (said.vector is not None and said.vector[0] == ahead.loop):
        raise ScheduleError(f"{what}, whose iterations do not run one after another; name another loop")
    conditions.require(nest.parallel <= position, f"{what}, whose iterations threads share; name a loop inside of those")
    guarded = next((each for each in nest.loops if each.guard is not None and each.axis in read[0].axes), None)
    if guarded is not None:
        raise ScheduleError(f"{what}: iterations of loop {guarded.name} may be beyond the end; split it with tail='cut'")
    here = next((stage.at for stage in attached if stage.tensor is tensor), 0)
    conditions.require(equal(here, 0), f"{what}: it is computed inside of these loops")
    return Fetched(tensor, position, minimum(evaluate(ahead.distance, choose), maximum(loop.trip - 1, 1)))


@once_for_each
def _copy(anchor: Tensor, tensor: Tensor, name: str, computed: bool) -> Tensor:
    """What ``anchor`` reads of ``tensor``, over the axes that the read depends on; a stage's element may be computed there."""
    assert anchor.body is not None
    found = [read for read in reads(anchor.body) if read.tensor is tensor]
    if len(found) != 1:
        raise ScheduleError(
            f"stage {anchor.name} reads {len(found)} elements of {tensor.name} at a time, so not from a copy; "
            f"rewrite the computation before cache_read"
        )
    (read,) = found
    used = free_vars(read)
    axes = tuple(axis for axis in axes_of(anchor) if axis in used)
    element: Expr = read
    if computed:
        assert tensor.body is not None
        element = substitute(tensor.body, dict(zip(tensor.axes, read.indices, strict=True)))
    return Tensor(name, tuple(axis.extent for axis in axes), tensor.dtype, axes, element)
