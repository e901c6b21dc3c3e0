"""MatrixUnit: tiled sums of products that matrix units multiply, a sketch for each unit that takes them beside the plain one.

The structure is that of :mod:`ansorlite.sketch.rules.gpu.tiling`, S R S R S, with a unit's instruction in the place of the
innermost loops. Both factors are stages of their own, computed into memory that the threads of a block share: there windows are
taken apart, and zeros fill the last steps. Last tiles of rows and columns are shifted inwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansorlite.analysis.access import walked
from ansorlite.analysis.matrix import MatrixFactor, MatrixProduct, fitting_units, matrix_product, tile_axis
from ansorlite.analysis.predicates import fusible_consumer
from ansorlite.machine.matrix import COLUMNS, HELD_ACROSS, HELD_DOWN, LANES_ACROSS, LANES_DOWN, PIECE_BYTES, MatrixUnit
from ansorlite.rewrites.matrix import FactorLayout
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.rules.gpu.nests import bind, copy_ahead, lanes_of
from ansorlite.sketch.rules.gpu.tiling import has_epilogue
from ansorlite.sketch.state import Applicability, Rule, State
from ansorlite.te import dtypes
from ansorlite.te.tensor import Tensor

#: Groups of threads of a block along rows, and along columns.
_GROUPS = (1, 2, 4)
#: Tiles that a group of threads has along rows, and along columns.
_TILES_DOWN = (1, 2, 4)
_TILES_ACROSS = (1, 2, 4, 8)
#: Instructions along the sum, of what is shared at a time.
_STEPS = (1, 2, 4)
#: Straight-line code of at most so many statements: the sums of a thread, or some steps of them.
_UNROLL_LIMITS = (1 << 8, 1 << 11)


def _units(state: State) -> list[tuple[MatrixUnit, MatrixProduct]]:
    gpu = state.target.gpu
    return fitting_units(state.stage, gpu.matrix) if gpu is not None else []


def _condition(state: State) -> Applicability:
    if has_epilogue(state) is Applicability.SKIP or not _units(state):
        return Applicability.SKIP
    return Applicability.APPLY


def _apply(state: State) -> tuple[State, ...]:
    made = [_multiplied(state, unit, how) for unit, how in _units(state)]
    return tuple(each for each in made if each is not None)


def _layout(unit: MatrixUnit, factor: MatrixFactor, how: MatrixProduct) -> FactorLayout:
    """As it lies in memory, where the unit takes it so."""
    if unit.from_shared:
        return FactorLayout.CORES
    first = dtypes.size(unit.factors) == 2 and not any(factor.runs_along(axis) for axis in how.inner if axis.extent > 1)
    return FactorLayout.STEPS_FIRST if first else FactorLayout.STEPS_LAST


def _multiplied(state: State, unit: MatrixUnit, how: MatrixProduct) -> State | None:
    """``None``: the rows and columns that are left for tiles are fewer than the unit's."""
    s, stage, target = state.fork(), state.stage, state.target
    layouts = [_layout(unit, factor, how) for factor in (how.a, how.b)]
    a, b = s.matrix_unit(stage.name, unit.name, layouts=(layouts[0].value, layouts[1].value))
    product = s.stage(stage.name).tensor
    now = matrix_product(product, unit.factors, unit.sums)
    consumer = fusible_consumer(s.dag, product)
    assert now is not None
    if consumer is None:
        return None
    row, column = tile_axis(now.rows), tile_axis(now.columns)
    widths = [width for width in unit.columns if width <= column.extent]
    if row.extent < unit.rows or not widths:
        return None
    rows = s.split(
        s.stage(product)[row],
        (
            None,
            s.sample(_GROUPS, name=f"{product.name}.{row.name}.groups"),
            s.sample(_TILES_DOWN, name=f"{product.name}.{row.name}.tiles"),
            *((unit.warps,) if unit.warps > 1 else ()),
            HELD_DOWN,
            LANES_DOWN,
        ),
    )
    tiles = tuple(width // COLUMNS for width in widths) if unit.from_shared else _TILES_ACROSS
    columns = s.split(
        s.stage(product)[column],
        (
            None,
            s.sample(_GROUPS, name=f"{product.name}.{column.name}.groups"),
            s.sample(tiles, name=f"{product.name}.{column.name}.tiles"),
            LANES_ACROSS,
            HELD_ACROSS,
        ),
    )
    pieces, steps = now.inner
    inner = s.split(s.stage(product)[pieces], (None, s.sample(_STEPS, name=f"{product.name}.steps"), 2))
    others = [s.stage(product)[axis] for axis in product.axes if axis not in (row, column) and axis.extent > 1]
    warps = rows[3:-2]
    blocks = (*others, rows[0], columns[0])
    threads = (rows[1], columns[1], *warps, rows[-1], columns[3])
    tile = (rows[2], columns[2], rows[-2], columns[4])
    bands: tuple[tuple[LoopRef, ...], ...] = (blocks, (inner[0],), threads, (*inner[1:], s.stage(product)[steps]), tile)
    s.reorder(*(loop for band in bands for loop in band))
    bind(s, blocks, "block")
    bind(s, threads, "thread")
    s.vectorize(tile[-1], lanes=HELD_ACROSS)
    s.unroll((inner[1], *tile), max_steps=s.sample(_UNROLL_LIMITS, name=f"{product.name}.unroll"))
    s.reverse_compute_at(consumer.name, blocks[-1])
    for made, layout in zip((a, b), layouts, strict=True):
        s.compute_at(made, inner[0], scope="shared")
        _shape(s, made.tensor, layout, lanes_of(target, made.tensor))
    copy_ahead(s, product, inner[0], target)
    return state.visited(s, {product.name: bands})


def _shape(s: Schedule, made: Tensor, layout: FactorLayout, widths: Sequence[int]) -> None:
    """How a factor is walked, and how it lies: without gaps, or so that 8 neighbouring rows begin in other banks."""
    last = made.axes[walked(made)[-1]]
    s.vectorize(s.stage(made)[last], lanes=s.sample(widths, name=f"{made.name}.lanes"))
    if layout is not FactorLayout.CORES:
        chunk = PIECE_BYTES // dtypes.size(made.dtype)
        s.storage_align(made.name, s.stage(made)[made.axes[-2]], 2 * chunk, s.sample((chunk, 2 * chunk), name=f"{made.name}.pad"))


MATRIX_UNIT = Rule("MatrixUnit", _condition, _apply)
