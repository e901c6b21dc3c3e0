"""Winograd (ours): a short convolution may also be computed with fewer products, between transforms.

It adds to the sketches of the direct sum, never replaces them: which is faster is measured. The products are visited
again, as the sum of products that they are. The transform of the data gets a nest of its own, in which one tile of
all its elements is straight-line code; what it is made from is computed inside of its loops. The transform back is
computed inside of whatever reads the result.
"""

from __future__ import annotations

from math import prod

from ansorlite.analysis.access import lane_axis
from ansorlite.analysis.branches import branch_axes
from ansorlite.analysis.short_convolution import ShortConvolution, short_convolution
from ansorlite.schedule.rewrite import inline, tensor_named
from ansorlite.schedule.steps import Hole, Inline, Parallel, Reorder, Step, Unroll, Vectorize
from ansorlite.schedule.steps import Winograd as WinogradStep
from ansorlite.schedule.winograd import data_name, product_name, winograd
from ansorlite.sketch.state import Rule, State, Verdict
from ansorlite.sketch.tiling import lane_choices, split
from ansorlite.target import Target
from ansorlite.te.tensor import Tensor

#: Elements of a tile along each window that are tried: 4 and 6 are 2 and 4 outputs of three taps. Tiles of 8 round five
#: times worse than tiles of 6.
TILES = (4, 6)
#: At most so many products of the direct sum's.
WORTHWHILE = 0.6
#: Its rounding errors are too large for shorter floats.
_DTYPES = ("float32", "float64")
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
    return tuple(_rewritten(state, outputs) for outputs in _tiles(form))


def _rewritten(state: State, outputs: tuple[int, ...]) -> State:
    stage = state.stage
    steps: list[Step] = [WinogradStep(stage.name, outputs)]
    dag = winograd(state.dag, stage.name, outputs)
    if stage not in state.dag.outputs:
        # What is left of the stage only picks elements of the tiles.
        steps.append(Inline(stage.name))
        dag = inline(dag, stage.name)
    steps += _transform(tensor_named(dag, data_name(stage.name)), state.target)
    return state.visited(*steps, dag=dag, first=(product_name(stage.name),))


def _transform(stage: Tensor, target: Target) -> tuple[Step, ...]:
    """A nest around straight-line code for one tile of every element along the axes that choose the expression."""
    lane, whole = lane_axis(stage), branch_axes(stage)
    axes = [axis for axis in stage.axes if axis.extent > 1 and axis not in whole and axis is not lane]
    tiled = [*axes, *([lane] if lane is not None else [])]
    steps: list[Step] = [split(stage, axis, 2, False, _MAX_ROW if axis is lane else 1) for axis in tiled]
    steps += [split(stage, axis, 1, False, axis.extent) for axis in stage.axes if axis in whole]
    outer = tuple(f"{axis.name}0" for axis in tiled)
    inner = (*(f"{a.name}1" for a in axes), *(f"{a.name}0" for a in stage.axes if a in whole))
    steps.append(Reorder(stage.name, (outer, (*inner, *([f"{lane.name}1"] if lane is not None else [])))))
    steps.append(Parallel(stage.name, Hole(f"{stage.name}.parallel", tuple(range(len(outer) + 1)))))
    if lane is not None:
        steps.append(Vectorize(stage.name, lane.name, Hole(f"{stage.name}.lanes", lane_choices(target, stage))))
    return (*steps, Unroll(stage.name, Hole(f"{stage.name}.unroll", (_STRAIGHT,))))


WINOGRAD = Rule("Winograd", _condition, _apply)
