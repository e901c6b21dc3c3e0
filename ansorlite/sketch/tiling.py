"""What gives a stage loops of its own, for the rules to use."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ansorlite.analysis.access import LEAST_LANES, accesses, contiguous_axis
from ansorlite.analysis.constants import constant_stages
from ansorlite.analysis.dot import words_dot
from ansorlite.analysis.predicates import is_expensive, is_strictly_inlinable, packable, reused_over
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.tiles import MAX_INNER
from ansorlite.sketch.state import Bands, State
from ansorlite.target import Target
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Axis
from ansorlite.te.tensor import Tensor

#: Ansor's multi-level tile structure on CPUs: S is one level of all space axes, R one of all reduce axes.
CPU_STRUCTURE = "SSRSRS"
#: Of a stage that reduces nothing: the outer tiles run in parallel, the inner ones are where producers are computed.
ELEMENTWISE_STRUCTURE = "SS"
#: Straight-line code of at most so many vector statements (Ansor's auto_unroll_max_step).
UNROLL_LIMITS = (0, 16, 64, 512)
#: Elements along the innermost loop of a stage that is not tiled for reuse: long rows are good.
MAX_ROW = 4096
#: A sum in lanes of partial results keeps so many rows at once, in so many vectors each: all in registers.
PARTIAL_ROWS, PARTIAL_VECTORS = 4, 8


def lane_choices(target: Target, tensor: Tensor, widest: int = 1) -> tuple[int, ...]:
    """Vector widths to choose from: scalar, half a register, and one register up to ``widest`` of them."""
    lanes = target.lanes(tensor.dtype)
    return tuple(sorted({1, max(1, lanes // 2), *(lanes * m for m in (1, 2, 4) if m <= widest)}))


def split(
    s: Schedule,
    stage: Tensor,
    axis: Axis,
    parts: int,
    perfect: bool,
    max_inner: int,
    most: Sequence[int | None] | None = None,
) -> tuple[LoopRef, ...]:
    """The loops ``i0 i1 ...`` that the loop over axis ``i`` becomes: a tile, of at most so many iterations a loop."""
    loop, name = s.stage(stage)[axis], f"{stage.name}.{axis.name}"
    tile = s.sample_tile(loop, parts, perfect=perfect, max_innermost=max_inner, most=most, name=name)
    return s.split(loop, tile)


def multi_level_tile(
    s: Schedule,
    stage: Tensor,
    structure: str,
    lane: Axis | None,
    target: Target,
    *,
    perfect: bool = False,
    max_inner: int = MAX_INNER,
    factor: Axis | None = None,
    counted: Axis | None = None,
    outer: Collection[Axis] = (),
) -> dict[str, Bands]:
    """Splits and a reorder into the bands of ``structure``, and the annotations of the nest; the bands of the stage.

    Args:
        lane: the axis whose innermost loop is innermost of all; for a reduce axis it makes a last band of its own.
        perfect: only tiles that divide (accumulators are in the output itself, which must not be added to twice).
        factor: an axis whose outermost loop makes partial results (rfactor): it leads the first band.
        counted: a reduce axis that only counts the parts of an rfactor: one loop, never split.
        outer: space axes that are in the outer bands only, as tiles of them further in are worth nothing.
    """
    # An axis of one element needs no loop; a stage of one element has one all the same, to hang annotations on.
    real = [axis for axis in stage.axes if axis.extent > 1] or list(stage.axes[-1:])
    space = [axis for axis in real if not (factor is not None and axis is stage.axes[0])]
    reduce = [axis for axis in stage.reduce_axes if axis is not counted]
    levels = {"S": structure.count("S"), "R": structure.count("R")}
    in_lanes = lane is not None and lane.reduce
    inner = PARTIAL_ROWS if in_lanes else max_inner
    loops = {axis: split(s, stage, axis, 2 if axis in outer else levels["S"], perfect, inner) for axis in space}
    for axis in reduce:
        extra = (axis is factor) + (axis is lane)
        # The inner reduction is a loop, not straight-line code: it may be as long as a panel of the operands.
        longest = PARTIAL_VECTORS * target.lanes(stage.dtype) if in_lanes and axis is lane else MAX_ROW
        loops[axis] = split(s, stage, axis, levels["R"] + extra, False, longest)
    # In the register tile the few vectors stay, and the many elements that are spread over one come and go.
    in_vectors = {axis for access in accesses(stage) if lane in access.axes for axis in access.axes}
    order = sorted(space, key=lambda axis: (axis is lane, axis in in_vectors))
    bands: list[tuple[LoopRef, ...]] = []
    level = {"S": 0, "R": 0}
    for kind in structure:
        last_space = kind == "S" and level["S"] == levels["S"] - 1
        members = (order if last_space else space) if kind == "S" else reduce
        members = [axis for axis in members if axis not in outer or level[kind] < 2]
        band = [loops[axis][level[kind] + (axis is factor)] for axis in members]
        band += [s.stage(stage)[counted]] if kind == "R" and counted is not None and level["R"] == 0 else []
        bands.append(tuple(band))
        level[kind] += 1
    if factor is not None:
        bands[0] = (loops[factor][0], *bands[0])
    if lane is not None and in_lanes:
        bands.append((loops[lane][-1],))
    tile = len(structure) - 1
    limits = (PARTIAL_ROWS * PARTIAL_VECTORS,) if in_lanes else UNROLL_LIMITS
    if is_expensive(stage) and not stage.reduce_axes:
        limits = (0,)  # a function is long enough: more of it in a row is more to compile, and no faster
    annotate(s, stage, tuple(bands), lane, lane_choices(target, stage), limits, inner=tile - (structure[tile - 1] == "R"))
    return {stage.name: tuple(bands)}


def annotate(
    s: Schedule,
    stage: Tensor,
    bands: Bands,
    lane: Axis | None,
    lanes: tuple[int, ...],
    limits: tuple[int, ...],
    *,
    inner: int,
    most_parallel: int | None = None,
) -> None:
    """Loops ordered in bands: the first is parallel, the last loop vectorised, the bands from ``inner`` on are unrolled."""
    loops = [loop for band in bands for loop in band]
    if loops:
        s.reorder(*loops)
    if bands[0]:
        depths = range(min(most_parallel or len(bands[0]), len(bands[0])) + 1)
        s.parallel(bands[0], depth=s.sample(depths, name=f"{stage.name}.parallel"))
    if lane is not None:
        s.vectorize(loops[-1], lanes=s.sample(lanes, name=f"{stage.name}.lanes"))
    unrolled = [loop for band in bands[inner:] for loop in band]
    if unrolled:
        s.unroll(unrolled, max_steps=s.sample(limits, name=f"{stage.name}.unroll"))


def ends(bands: Bands) -> tuple[LoopRef | None, ...]:
    """The place right inside of each band: of its last loop, or the root where there is none yet."""
    found: list[LoopRef | None] = []
    for band in bands:
        found.append(band[-1] if band else found[-1] if found else None)
    return tuple(found)


def follow(s: Schedule, stage: str, leader: str, bands: Bands, after: tuple[int, ...]) -> None:
    """``stage`` as the epilogue of ``leader``, after one of these numbers of bands.

    A sum into a single element has no loops but those that add up. None of its places is the root: they are inside of the first
    of these, which is to say after all of them.
    """
    places = ends(bands)
    first = next(place for place in places if place is not None)
    found = dict.fromkeys(places[number - 1] or first for number in after)
    s.reverse_compute_at(stage, s.sample(list(found), name=f"{leader}.at"))


def space_lanes(stage: Tensor, target: Target) -> tuple[Axis, ...]:
    """The space axes worth vectorising in a tiled stage, the natural one first.

    That is the last axis, along which the output is contiguous; and where it is short and no multiple of a vector, or
    the output is not contiguous along it, also the longest other axis, with the output written transposed.
    """
    real = [axis for axis in stage.axes if axis.extent > 1]
    natural, lanes = natural_lane(stage), target.lanes(stage.dtype)
    if natural is None:
        return ()
    if natural is real[-1] and (natural.extent % lanes == 0 or natural.extent >= 8 * lanes):
        return (natural,)
    others = [axis for axis in real if axis is not natural and axis.extent >= lanes]
    return (natural, max(others, key=lambda axis: axis.extent)) if others else (natural,)


def crossing_lane(dag: ComputeDAG, stage: Tensor, target: Target) -> Axis | None:
    """The axis to vectorise besides the natural one, where a window slides along that in strides and so loads no whole vectors.

    It is the longest one that no such window moves along: its elements are then spread over the vectors, which are
    transposed where they are stored. ``None`` where the natural one does, or where :func:`space_lanes` offers that one anyway;
    and where more would have to be put in order for it, in every call, than the windows read.
    """
    lanes = space_lanes(stage, target)
    slid = [access for access in accesses(stage) if (access.stride(lanes[0]) or 0) > 1 and not packable(access)] if lanes else []
    still = [axis for axis in stage.axes if not any(axis in access.axes for access in slid)]
    wide = [axis for axis in still if axis.extent >= target.lanes(stage.dtype)]
    if not slid or not wide:
        return None
    crossing, constants = max(wide, key=lambda axis: axis.extent), constant_stages(dag)
    across = [access.tensor for access in accesses(stage) if access.stride(crossing) not in (0, 1)]
    packed = sum(math.prod(tensor.shape) for tensor in across if not tensor.constant and tensor not in constants)
    return crossing if crossing not in lanes and packed <= sum(math.prod(access.tensor.shape) for access in slid) else None


@dataclass(frozen=True)
class Pack:
    """An operand to be read from a copy in the order of use, at the root or after one of the first bands.

    Attributes:
        tensor: its name.
        bands: the copy may be made after so many.
        computed: whether the operand is a stage that is computed into the copy, and nowhere else.
    """

    tensor: str
    bands: int
    computed: bool

    def apply(self, s: Schedule, stage: str, bands: Bands) -> None:
        """Have ``stage`` read the copy."""
        name = s.free(f"{self.tensor}_packed")
        at = s.sample((None, *ends(bands)[: self.bands]), name=f"{name}.at")
        s.cache_read(stage, self.tensor, at=at, layout="packed", name=name, computed=self.computed)


def packs(state: State, stage: Tensor, lane: Axis, structure: str) -> tuple[tuple[Pack, ...], ...] | None:
    """The sets of operands to pack that are worth a sketch each; ``None`` when vectors along ``lane`` cannot be loaded.

    An operand that is walked along ``lane`` with a stride must be packed; one that is walked contiguously, and is used
    again along another axis, may be. So may, besides, one whose elements are each spread over a vector, if it is larger
    than the first cache: its rows, read side by side, would displace one another there. Only inputs of the task are
    packed, for they are there before the nest begins, and ``operands`` made of inputs, which are computed into the copy and
    nowhere else.

    Matrix units read a row's words side by side, as their stage has them, and not in the order of use: none is packed.

    A constant operand, or a stage that follows from constants alone, is packed at the root whenever it can be: that is done
    before the first call, and costs none of them.
    """
    target, constants = state.target, constant_stages(state.dag)
    places = structure.index("R") + 1
    free: list[Pack] = []
    must: list[Pack] = []
    may: list[Pack] = []
    spread: list[Pack] = []
    loadable = True
    on_matrix_units = words_dot(stage) in target.matrix_dots
    for access in accesses(stage):
        stride = access.stride(lane)
        if stride == 0 and on_matrix_units:
            continue
        stays = access.tensor in constants and not is_strictly_inlinable(state.dag, access.tensor)
        constant = access.tensor.constant or stays
        single = sum(other.tensor is access.tensor for other in accesses(stage)) == 1
        made = access.tensor.name in state.operands
        computed = made and all(read.tensor.body is None for read in accesses(access.tensor))
        step = Pack(access.tensor.name, 0 if constant else places, access.tensor.body is not None and made)
        source = computed or access.tensor.body is None or (constant and not made)
        can = source and packable(access) and single and (constant or bool(reused_over(stage, access)))
        if constant and can and not access.axes.isdisjoint(stage.reduce_axes):
            free.append(step)
        elif stride == 0:
            large = math.prod(access.tensor.shape) * dtypes.size(access.tensor.dtype) > target.l1
            if can and not computed and large and not access.axes.isdisjoint(stage.reduce_axes):
                spread.append(step)
        elif stride != 1 or (can and computed):
            loadable &= can
            must.append(step)
        elif can:
            may.append(step)
    if not loadable:
        return (tuple(free),) if lane is natural_lane(stage) else None
    must += free
    return tuple(dict.fromkeys((tuple(must), (*must, *may), (*must, *may, *spread))))


def natural_lane(stage: Tensor) -> Axis | None:
    """The last space axis of more than one element; if a vector of it has next to nothing in it, the one that is read best."""
    real = [axis for axis in stage.axes if axis.extent > 1]
    wide = [axis for axis in real if axis.extent >= LEAST_LANES]
    if not wide or wide[-1] is real[-1]:
        return real[-1] if real else None
    return contiguous_axis(stage, wide)
