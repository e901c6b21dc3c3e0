"""The draft reads every number of a machine from the machine's row."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields, replace

import numpy as np
import pytest

from ansorlite.cost_model import draft
from ansorlite.cost_model.draft import Cycles, Draft
from ansorlite.errors import CalibrationError
from ansorlite.features.names import COLUMN
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import FAMILIES, WIDE
from tests import targets

#: log2(1 + x) of these; the rest are 0.
_MAGNITUDES = {
    "iterations": 2.0**30, "unrolled": 2.0**12, "reduce": 64.0, "inner_reduce": 64.0, "branches": 2.0**20, "cheap": 2.0**30,
    "vector_loads": 4.0, "scalar_loads": 2.0, "strided_loads": 1.0, "crossing_loads": 2.0,
    "strided_stores": 1.0, "fixed_loads": 48.0, "inner_trip": 4.0, "vector_trip": 16.0,
    "accumulators": 40.0,
    "bytes": 2.0**34, "l1_traffic": 2.0**30, "l2_traffic": 2.0**30, "l3_traffic": 2.0**30, "l1_runs": 2.0**20, "l2_runs": 2.0**20,
    "coherence_misses": 2.0**20,
    "written_over": 2.0**20, "thread_bytes": 2.0**34, "constant_bytes": 0.0,
    "pages": 2.0**20, "convert": 2.0**20, "dot": 2.0**20, "div": 2.0**20, "math": 2.0**20,
}  # fmt: skip


def _features(**plain: float) -> np.ndarray:
    found = np.zeros((1, 1, len(COLUMN)))
    for name, value in _MAGNITUDES.items():
        found[0, 0, COLUMN[name]] = np.log2(1 + plain.pop(name, value))
    for name, value in ({"lanes": 4.0, "lane_use": 0.5, "balance": 1.0, "parallel_region": 1.0, "parallel": 4.0} | plain).items():
        found[0, 0, COLUMN[name]] = value
    return found


NO_LOADS = {"vector_loads": 0.0, "scalar_loads": 0.0, "strided_loads": 0.0}
#: Programs that are bound by one thing or another; sums in registers, in memory, and none.
PROGRAMS = (
    _features(accumulates=1.0, in_registers=1.0),
    _features(accumulates=1.0, in_registers=1.0, accumulators=1.0, mul=1.0, **NO_LOADS),
    _features(accumulates=1.0, in_registers=1.0, accumulators=1.0, dot=0.0, **NO_LOADS),
    _features(accumulates=1.0),
    _features(accumulates=1.0, inner_reduce=0.0),
    _features(balance=0.25),
    _features(**NO_LOADS, div=0.0, math=0.0, convert=0.0),
    _features(unrolled=1.0, cheap=0.0, div=0.0, math=0.0, convert=0.0, dot=0.0),
    _features(lanes=3.0),
    _features(vector_trip=11.0),
    _features(vector_trip=11.0, unrolled=1.0, cheap=0.0, div=0.0, math=0.0, convert=0.0, dot=0.0),
)
#: The same on matrix units: bound by products, by loads, and by sums that wait for each other.
_TILES = {"tile_products": 2.0**20, "tile_loads": 2.0**20, "tile_stores": 2.0**10, "tile_sums": 4.0}
PROGRAMS += tuple(
    _features(**{name: float(np.log2(1 + value)) for name, value in (_TILES | other).items()})
    for other in ({}, {"tile_loads": 2.0**24}, {"tile_sums": 1.0})
)
#: Two cores with such units.
TILED = replace(targets.WIDE, cpu="sapphirerapids", features="+amx-int8,+amx-bf16,+amx-tile")
#: Capacities decide what the features are, before the draft sees them.
IN_FEATURES = ("l1_share", "streams", "tlb_pages")


@pytest.mark.parametrize("name", [f.name for f in fields(MachineConstants) if f.name not in IN_FEATURES])
def test_every_constant_counts(name: str) -> None:
    row = replace(WIDE, issue=1.0) if name == "issue" else replace(WIDE, l3_all=8.0) if name == "l3_all" else WIDE
    other = replace(row, **{name: 0.25 * getattr(row, name) or 3.0})
    one, two = (Draft(replace(TILED, machine=machine)) for machine in (row, other))
    level = {"l2_share": TILED.l2, "l3_share": TILED.l3}
    some = PROGRAMS if name not in level else (_features(bytes=0.5 * level[name], thread_bytes=0.5 * level[name]),)
    assert any(one.seconds(program) != two.seconds(program) for program in some)


@pytest.mark.parametrize(("lanes", "parts"), [(16, 1.0), (12, 1.0), (8, 0.5), (1, 0.5), (24, 1.5), (32, 2.0)])
def test_half_a_register_takes_less_where_a_whole_one_is_two_parts(lanes: int, parts: float) -> None:
    program = _features(lanes=float(np.log2(lanes)), lane_use=1.0)
    whole, split = (Draft(replace(targets.WIDE, machine=replace(WIDE, half=half))).cycles(program) for half in (1.0, 0.5))
    assert split.arithmetic == pytest.approx(whole.arithmetic * parts / np.ceil(lanes / 16))
    assert split.latency == whole.latency
    assert split.issue == whole.issue


@pytest.mark.parametrize(("trip", "pieces"), [(8, 1), (9, 1), (12, 1), (7, 3), (13, 2), (15, 3)])
def test_what_is_left_of_a_row_is_stored_in_pieces_or_under_a_mask(trip: int, pieces: int) -> None:
    """Where it is a power of two it is one store."""
    program = _features(lanes=float(np.log2(min(trip, 8))), vector_trip=float(trip), strided_stores=0.0)
    masked = replace(targets.WIDE, vector_bytes=32, machine=replace(WIDE, masked_store=100.0))
    apart = replace(masked, features="+avx2")
    found = [float(Draft(target).cycles(program).stores[0, 0]) for target in (masked, apart)]
    none = float(Draft(replace(masked, machine=WIDE)).cycles(program).stores[0, 0])
    assert (found[0] > 10 * none) == (pieces > 1)
    assert (found[1] > none) == (pieces > 1)
    assert found[1] < 10 * none


def test_short_runs_come_slowly() -> None:
    """Those that end before a page does; of longer ones the first page."""
    target = replace(targets.WIDE, machine=replace(WIDE, l3_short=0.5, l3_run=0.0))
    plain = replace(target, machine=replace(target.machine, l3_short=0.0))

    def longer(lines: int) -> float:
        program = _features(l2_traffic=2.0**30, l2_runs=2.0**30 / (64 * lines))
        slow, fast = (Draft(each).cycles(program).l3[0, 0] for each in (target, plain))
        return float(slow / fast)

    assert [longer(1), longer(64)] == pytest.approx([1.5, 1.5])
    assert longer(128) == pytest.approx(1.25)


def test_constants_come_from_beyond_the_second_cache() -> None:
    """What else fits stays there from one call to the next."""
    fits = {"bytes": 2.0**18, "thread_bytes": 2.0**17, "l2_traffic": 2.0**18}
    model = Draft(replace(targets.WIDE, threads=2))

    def third(**more: float) -> float:
        return float(model.cycles(_features(**fits, **more)).l3[0, 0])

    assert third() == 0.0
    assert third(constant_bytes=2.0**17) == pytest.approx(2.0**18 / min(2 * WIDE.l3_bytes, WIDE.l3_all))


def test_a_dot_product_is_added_to_its_sum_at_once() -> None:
    """What it takes is measured so; a multiply-add is one operation, too."""
    alone = {"div": 0.0, "math": 0.0, "convert": 0.0, "lane_use": 1.0, "cheap": 2.0**20}
    added, multiplied = _features(**alone), _features(**alone, dot=0.0, mul=float(np.log2(1 + 2.0**20)))
    model = Draft(targets.WIDE)
    assert model.cycles(added).arithmetic == pytest.approx(2.0**16 * WIDE.dot)
    assert model.cycles(multiplied).arithmetic == pytest.approx(2.0**16 * WIDE.arithmetic)


#: One thread without anything to do.
IDLE = Cycles(*(np.zeros((1, 1)) for _ in Cycles._fields))._replace(threads=np.ones((1, 1)))


def test_loads_of_two_lines_are_not_all_hidden_behind_arithmetic() -> None:
    """Though units could take them all meanwhile."""
    aligned = IDLE._replace(arithmetic=np.array([[100.0]]), loads=np.array([[40.0]]))
    crossing = aligned._replace(loads=np.array([[50.0]]), crossings=np.array([[10.0]]))
    assert crossing.total(WIDE) - aligned.total(WIDE) == pytest.approx(WIDE.core_overlap * 10.0)


def test_products_hide_most_of_what_loads_of_tiles_take() -> None:
    tiled = _features(**{name: float(np.log2(1 + value)) for name, value in _TILES.items()})
    cycles = Draft(TILED).cycles(tiled)
    both = IDLE._replace(tiles=cycles.tiles, loads=cycles.loads)
    assert cycles.loads < cycles.tiles
    assert both.total(WIDE) == pytest.approx(cycles.tiles + WIDE.core_overlap * cycles.loads)
    vectors = IDLE._replace(arithmetic=cycles.tiles, loads=cycles.loads)
    assert vectors.total(WIDE) == pytest.approx(cycles.tiles)


def test_no_number_of_a_machine_is_in_the_model() -> None:
    numbers = {node.value for node in ast.walk(ast.parse(inspect.getsource(draft))) if isinstance(node, ast.Constant)}
    assert {number for number in numbers if isinstance(number, int | float)} <= {0, 1, 2}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_row_written_down_is_the_row_read(name: str) -> None:
    assert MachineConstants.of(FAMILIES[name].as_dict()) == FAMILIES[name]


def test_a_row_of_before_there_were_tiles_has_the_public_ones() -> None:
    old = {name: value for name, value in WIDE.as_dict().items() if not name.startswith("tile_")}
    assert MachineConstants.of(old) == WIDE


@pytest.mark.parametrize("damage", [{"clock": "fast"}, {"clock": float("nan")}, {"load": -1.0}, {"new": 1.0}, {"load": True}])
def test_a_damaged_row_is_refused_by_name(damage: dict[str, object]) -> None:
    with pytest.raises(CalibrationError, match=next(iter(damage))):
        MachineConstants.of({**WIDE.as_dict(), **damage})
