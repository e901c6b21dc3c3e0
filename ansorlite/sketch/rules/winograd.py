"""Winograd (ours): a short convolution may also be computed with fewer products, between transforms.

It adds to the sketches of the direct sum, never replaces them: which is faster is measured. It is asked where a count of
operations, and of the weights to read, says that it pays; the size of tiles follows from that count too. The products are tiled
once for the caches and once for registers. The transform of the data gets a nest of its own, in which one tile of all
its elements is straight-line code; what it is made from is computed inside of its loops. So does what reads the result:
the transform back is computed inside of it, tile by tile where its axes can be divided into tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod

from ansorlite.analysis.access import accesses, lane_axis
from ansorlite.analysis.branches import branch_axes
from ansorlite.analysis.short_convolution import ShortConvolution, short_convolution
from ansorlite.rewrites.winograd import data_name, inverse_name, product_name
from ansorlite.schedule.primitives import CacheWrite, Convert
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.state import Applicability, Bands, Rule, State, is_settled
from ansorlite.sketch.tiling import annotate, ends, follow, lane_choices, multi_level_tile, packs, space_lanes, split
from ansorlite.target import Target
from ansorlite.te.expr import Axis
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor
from ansorlite.topi.winograd import Matrix, transforms

#: Elements of a tile along each window that are tried: 4 and 6 are 2 and 4 outputs of three taps. Tiles of 8 round five
#: times worse than tiles of 6.
TILES = (4, 6)
#: So many elements of a tile are straight-line code at most.
LARGEST = 64
#: At most so much of the direct sum's work.
WORTHWHILE = 0.8
#: Units of one operation of a transform: it goes through the caches, where the sum's stay in registers, fused.
TRANSFORM = 5.0
#: And of one weight that comes from memory. Within a model all do: what other kernels read has displaced them.
WEIGHT = 16.0
#: Its rounding errors are too large for shorter floats.
_DTYPES = ("float32", "float64")
#: The products' tiles: one band for the caches, one for registers.
_STRUCTURE = "SSRS"
#: All elements of a tile and a few vectors of tiles are straight-line code.
_STRAIGHT = 512
#: Elements along the innermost loop of the transform: a few vectors.
_MAX_ROW = 64


def winograd_rule(limit: float = WORTHWHILE) -> Rule:
    """The rule with tiles that save enough work: at most ``limit`` times the direct sum's is left."""

    def condition(state: State) -> Applicability:
        stage = state.stage
        if state.is_settled(stage) or stage.dtype not in _DTYPES or _is_rewritten(state):
            return Applicability.SKIP
        form = short_convolution(stage)
        if form is None or _slides_along_lanes(form):
            return Applicability.SKIP
        return Applicability.APPLY if _tile(stage, form, limit) is not None else Applicability.SKIP

    def apply(state: State) -> tuple[State, ...]:
        form = short_convolution(state.stage)
        assert form is not None
        outputs = _tile(state.stage, form, limit)
        assert outputs is not None
        return _rewritten(state, outputs)

    return Rule("Winograd", condition, apply)


def _is_rewritten(state: State) -> bool:
    """Whether the stage is what became of one that was asked before: computed to be copied out, or from converted factors."""
    name = state.stage.name
    return any(
        (isinstance(step, CacheWrite) and step.name == name) or (isinstance(step, Convert) and step.stage.name == name)
        for step in state.steps
    )


def _slides_along_lanes(form: ShortConvolution) -> bool:
    """Whether neighbours in the data are neighbours along a window.

    Elements of a tile would have to change lanes, and vectors of one element of many tiles lie a page or more from those of
    the next: that cost all that is saved, on every size tried.
    """
    return any(window.data_dim == len(form.data.indices) - 1 for window in form.windows)


def _tile(stage: Tensor, form: ShortConvolution, limit: float) -> tuple[int, ...] | None:
    """The outputs of a tile along each window, of those that save enough the ones that leave least work."""
    found = []
    for size in TILES:
        outputs = tuple(size - window.tap.extent + 1 for window in form.windows)
        if min(outputs) >= 2 and size ** len(outputs) <= LARGEST:
            found.append((_work(stage, form, outputs), outputs))
    least, outputs = min(found, default=(inf, ()))
    return outputs if least <= limit * _direct_work(stage, form) and found else None


def _direct_work(stage: Tensor, form: ShortConvolution) -> float:
    """Of the direct sum: its operations, and reading the weights."""
    return stage.iterations + WEIGHT * prod(form.filter.tensor.shape)


def _work(stage: Tensor, form: ShortConvolution, outputs: Sequence[int]) -> float:
    """Of Winograd's way, in the same units, operations of the direct sum. Constant weights are transformed once for all calls."""
    windows = form.windows
    matrices = [transforms(m, window.tap.extent) for m, window in zip(outputs, windows, strict=True)]
    sizes, taps = [len(matrix.data) for matrix in matrices], [window.tap.extent for window in windows]
    count = prod(-(-window.space.extent // m) for window, m in zip(windows, outputs, strict=True))
    products = stage.iterations // prod(window.space.extent * window.tap.extent for window in windows) * count * prod(sizes)
    data = _passes([matrix.data for matrix in matrices], sizes) * count * _others(form.data.tensor, [w.data_dim for w in windows])
    back = _passes([matrix.inverse for matrix in matrices], sizes) * count
    back *= prod(axis.extent for axis in stage.axes if all(axis is not window.space for window in windows))
    filters = _others(form.filter.tensor, [window.filter_dim for window in windows])
    weights = 0 if form.filter.tensor.constant else _passes([matrix.filter for matrix in matrices], taps) * filters
    return products + TRANSFORM * (data + back + weights) + WEIGHT * prod(sizes) * filters


def _passes(matrices: Sequence[Matrix], lengths: Sequence[int]) -> int:
    """Operations that transform one box of ``lengths``: one dimension after the other, without the products with 0."""
    total, box = 0, list(lengths)
    for number, matrix in enumerate(matrices):
        total += sum(coefficient != 0 for row in matrix for coefficient in row) * prod(box) // box[number]
        box[number] = len(matrix)
    return total


def _others(tensor: Tensor, dims: Sequence[int]) -> int:
    """Elements of ``tensor`` at one place along ``dims``."""
    return prod(extent for d, extent in enumerate(tensor.shape) if d not in dims)


def _rewritten(state: State, outputs: tuple[int, ...]) -> tuple[State, ...]:
    stage, s, target = state.stage, state.fork(), state.target
    divided = _divided(state, outputs)
    s.winograd(stage.name, outputs)
    # What is left of the stage only picks elements of the tiles: over tiles and their elements that is plain.
    for axis, m in divided:
        s.divide(s.stage(stage)[axis], m)
    if stage not in state.dag.outputs:
        s.inline(stage.name)
    data = tensor_named(s.dag, data_name(stage.name))
    bands = _straight(s, data, branch_axes(data), target)
    _inside(s, bands[data.name], tuple(t for t in s.dag.producers(data) if branch_axes(t)), target)
    last = tensor_named(s.dag, inverse_name(stage.name, len(outputs) - 1))
    users = s.dag.consumers(last)
    if len(users) == 1 and not users[0].reduce_axes and not is_settled(s, users[0]):
        (user,) = users
        bands |= _straight(s, user, _moves_not(user, last), target)
        # Consumers first: a stage is computed where all that reads it is.
        inverses = [tensor_named(s.dag, inverse_name(stage.name, number)) for number in reversed(range(len(outputs)))]
        _inside(s, bands[user.name], inverses, target)
    local = s.cache_write(product_name(stage.name))
    after = state.visited(s, bands)
    return _products(after, product_name(stage.name), local.name)


def _products(state: State, name: str, local: str) -> tuple[State, ...]:
    """The nests of the products, which are summed in the tile ``local``: sums so short stay in registers from start to end."""
    stage = tensor_named(state.dag, local)
    reads = accesses(stage)
    batch = next(axis for axis in stage.axes if all(axis in access.axes for access in reads))
    found = []
    for lane in space_lanes(stage, state.target):
        for packed in packs(state, stage, lane, _STRUCTURE) or ():
            s = state.fork()
            bands = multi_level_tile(s, stage, _STRUCTURE, lane, state.target, outer=(batch,))
            follow(s, name, local, bands[local], (1, 2))
            for pack in packed:
                pack.apply(s, local, bands[local])
            found.append(replace(state, schedule=s, bands={**state.bands, **bands}))
    return tuple(found)


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


def _straight(s: Schedule, stage: Tensor, whole: frozenset[Axis], target: Target) -> dict[str, Bands]:
    """A nest around straight-line code for one tile, and all elements of it along the axes ``whole``."""
    lane = lane_axis(stage)
    axes = [axis for axis in stage.axes if axis.extent > 1 and axis not in whole]
    axes.sort(key=lambda axis: axis is lane)
    loops = {axis: split(s, stage, axis, 2, False, _MAX_ROW if axis is lane else 1) for axis in axes}
    loops |= {axis: split(s, stage, axis, 1, False, axis.extent) for axis in stage.axes if axis in whole}
    last = sorted((axis for axis in stage.axes if axis in loops), key=lambda axis: (axis is lane, axis in whole))
    bands = (tuple(loops[axis][0] for axis in axes), tuple(loops[axis][-1] for axis in last))
    annotate(s, stage, bands, lane, lane_choices(target, stage)[-1:], (_STRAIGHT,), inner=1, most_parallel=2)
    return {stage.name: bands}


def _inside(s: Schedule, bands: Bands, stages: Sequence[Tensor], target: Target) -> None:
    """``stages`` computed for each tile of a nest, whose loops over tiles are the first of its bands."""
    outer, _ = ends(bands)
    for stage in stages:
        s.compute_at(stage.name, outer)
        lane = lane_axis(stage)
        if lane is not None:
            s.vectorize(s.stage(stage)[lane], lanes=lane_choices(target, stage)[-1])


WINOGRAD = winograd_rule()
