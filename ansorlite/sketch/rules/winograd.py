"""Winograd (ours): a short convolution may also be computed with fewer products, between transforms.

It adds to the sketches of the direct sum, never replaces them: which is faster is measured. The products are tiled
once for the caches and once for registers. The transform of the data gets a nest of its own, in which one tile of all
its elements is straight-line code; what it is made from is computed inside of its loops. So does what reads the result:
the transform back is computed inside of it, tile by tile where its axes can be divided into tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ansorlite.analysis.access import accesses, lane_axis
from ansorlite.analysis.branches import branch_axes
from ansorlite.analysis.short_convolution import ShortConvolution, short_convolution
from ansorlite.schedule.divide import Division, divide
from ansorlite.schedule.rewrite import cache_write, inline, tensor_named
from ansorlite.schedule.steps import CacheWrite, ComputeAt, Divide, Hole, Inline, Parallel, Reorder, Step, Unroll, Vectorize
from ansorlite.schedule.steps import Winograd as WinogradStep
from ansorlite.schedule.winograd import data_name, inverse_name, product_name, winograd
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.sketch.tiling import follow, lane_choices, multi_level_tile, packs, space_lanes, split
from ansorlite.target import Target
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

#: Elements of a tile along each window that are tried: 4 and 6 are 2 and 4 outputs of three taps. Tiles of 8 round five
#: times worse than tiles of 6.
TILES = (4, 6)
#: At most so many products of the direct sum's.
WORTHWHILE = 0.6
#: Its rounding errors are too large for shorter floats.
_DTYPES = ("float32", "float64")
#: The products' tiles: one band for the caches, one for registers.
_STRUCTURE = "SSRS"
#: All elements of a tile and a few vectors of tiles are straight-line code.
_STRAIGHT = 512
#: Elements along the innermost loop of the transform: a few vectors.
_MAX_ROW = 64


def _tiles(form: ShortConvolution) -> list[tuple[int, ...]]:
    """The outputs of a tile along each window, where they save enough products."""
    found = []
    for size in TILES:
        outputs = tuple(size - window.tap.extent + 1 for window in form.windows)
        if min(outputs) < 2:
            continue
        per_tile = size ** len(outputs)
        tiles = prod(-(-w.space.extent // m) for w, m in zip(form.windows, outputs, strict=True))
        direct = prod(w.space.extent * w.tap.extent for w in form.windows)
        if tiles * per_tile <= WORTHWHILE * direct:
            found.append(outputs)
    return found


def _condition(state: State) -> Verdict:
    stage = state.stage
    if state.is_settled(stage) or stage.dtype not in _DTYPES:
        return Verdict.SKIP
    form = short_convolution(stage)
    return Verdict.APPLY if form is not None and _tiles(form) else Verdict.SKIP


def _apply(state: State) -> tuple[State, ...]:
    form = short_convolution(state.stage)
    assert form is not None
    return tuple(after for outputs in _tiles(form) for after in _rewritten(state, outputs))


def _rewritten(state: State, outputs: tuple[int, ...]) -> tuple[State, ...]:
    stage = state.stage
    steps: list[Step] = [WinogradStep(stage.name, outputs)]
    dag = winograd(state.dag, stage.name, outputs)
    # What is left of the stage only picks elements of the tiles: over tiles and their elements that is plain.
    for axis, m in _divided(state, outputs):
        steps.append(Divide(stage.name, axis.name, m))
        dag = divide(dag, Division(tensor_named(dag, stage.name), axis, m))
    if stage not in state.dag.outputs:
        steps.append(Inline(stage.name))
        dag = inline(dag, stage.name)
    data = tensor_named(dag, data_name(stage.name))
    steps += _straight(data, branch_axes(data), state.target)
    steps += _inside(data, tuple(t for t in dag.producers(data) if branch_axes(t)), state.target)
    last = tensor_named(dag, inverse_name(stage.name, len(outputs) - 1))
    users = dag.consumers(last)
    if len(users) == 1 and not users[0].reduce_axes and not state.is_settled(users[0]):
        (user,) = users
        steps += _straight(user, _moves_not(user, last), state.target)
        inverses = [tensor_named(dag, inverse_name(stage.name, number)) for number in range(len(outputs))]
        steps += _inside(user, inverses, state.target)
    name = product_name(stage.name)
    steps.append(CacheWrite(name, f"{name}_local"))
    after = state.visited(*steps, dag=cache_write(dag, name, f"{name}_local"))
    return _products(after, name, f"{name}_local")


def _products(state: State, name: str, local: str) -> tuple[State, ...]:
    """The nests of the products, which are summed in the tile ``local``: sums so short stay in registers from start to end."""
    stage = tensor_named(state.dag, local)
    reads = accesses(stage)
    batch = next(axis for axis in stage.axes if all(axis in access.axes for access in reads))
    after = follow(tensor_named(state.dag, name), stage, (1, 2))
    nests = (
        (*multi_level_tile(stage, _STRUCTURE, lane, state.target, batch=batch), after, *packed)
        for lane in space_lanes(stage, state.target)
        for packed in packs(state, stage, lane, _STRUCTURE) or ()
    )
    return tuple(replace(state, steps=state.steps + nest) for nest in nests)


def _divided(state: State, outputs: tuple[int, ...]) -> list[tuple[Axis, int]]:
    """The windows' axes that become two, tiles and elements of a tile: not where lanes run over them, or tiles reach further."""
    form = short_convolution(state.stage)
    assert form is not None
    if any(state.is_settled(stage) for stage in state.dag.computes):
        return []
    lane = lane_axis(state.stage)
    pairs = zip(form.windows, outputs, strict=True)
    return [(w.space, m) for w, m in pairs if w.space is not lane and w.space.extent % m == 0 and w.space.extent > m]


def _moves_not(user: Tensor, inverse: Tensor) -> frozenset[Axis]:
    """The axes of ``user`` that no tile is chosen by alone: all of their elements are computed together."""
    chosen = {d for d, axis in enumerate(inverse.axes) if axis in branch_axes(inverse)} | {0}
    found = [access for access in accesses(user) if access.tensor is inverse]
    dims = [form for access in found for d, form in enumerate(access.dims) if form is not None and d not in chosen]
    moving = {term for form in dims for term, _ in form.terms}
    return frozenset(axis for axis in user.axes if axis not in moving and any(axis in access.axes for access in found))


def _straight(stage: Tensor, whole: frozenset[Axis], target: Target) -> tuple[Step, ...]:
    """A nest around straight-line code for one tile, and all elements of it along the axes ``whole``."""
    lane = lane_axis(stage)
    axes = [axis for axis in stage.axes if axis.extent > 1 and axis not in whole]
    axes.sort(key=lambda axis: axis is lane)
    steps: list[Step] = [split(stage, axis, 2, False, _MAX_ROW if axis is lane else 1) for axis in axes]
    steps += [split(stage, axis, 1, False, axis.extent) for axis in stage.axes if axis in whole]
    inner = {axis: f"{axis.name}{0 if axis in whole else 1}" for axis in stage.axes if axis in whole or axis in axes}
    last = sorted(inner, key=lambda axis: (axis is lane, axis in whole))
    outer = tuple(f"{axis.name}0" for axis in axes)
    steps.append(Reorder(stage.name, (outer, tuple(inner[axis] for axis in last))))
    steps.append(Parallel(stage.name, Hole(f"{stage.name}.parallel", tuple(range(min(3, len(outer) + 1))))))
    if lane is not None:
        steps.append(Vectorize(stage.name, lane.name, Hole(f"{stage.name}.lanes", lane_choices(target, stage)[-1:])))
    return (*steps, Unroll(stage.name, Hole(f"{stage.name}.unroll", (_STRAIGHT,))))


def _inside(anchor: Tensor, stages: Sequence[Tensor], target: Target) -> list[Step]:
    """``stages`` computed for each tile of the nest of ``anchor``."""
    steps: list[Step] = []
    for stage in stages:
        steps.append(ComputeAt(stage.name, anchor.name, Hole(f"{stage.name}.at", (1,))))
        steps.append(Parallel(stage.name, Hole(f"{stage.name}.parallel", (0,))))
        lane = lane_axis(stage)
        if lane is not None:
            lanes = lane_choices(target, stage)[-1:]
            steps.append(Vectorize(stage.name, lane.name, Hole(f"{stage.name}.lanes", lanes)))
    return steps


WINOGRAD = Rule("Winograd", _condition, _apply)
