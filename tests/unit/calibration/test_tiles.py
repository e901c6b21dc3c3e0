"""The loops that matrix units are measured with."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansorlite.calibration import tiles
from ansorlite.calibration.stopwatch import Stopwatch, storage
from ansorlite.machine import amx
from ansorlite.target import LEVELS, process_target
from ansorlite.te.ops import BinaryOp
from tests.unit.calibration.test_loops import assembly

WITH_TILES = replace(LEVELS["x86-64-v4"], features=f"{LEVELS['x86-64-v4'].features},+amx-tile,+amx-int8,+amx-bf16")


@pytest.mark.parametrize("op", sorted(WITH_TILES.matrix_dots, key=str))
def test_products_are_of_the_operation_that_is_asked_for(op: BinaryOp) -> None:
    made = {
        name: re.findall(r"\t(tdp\w+)\t(%tmm\d), (%tmm\d), (%tmm\d)", assembly(WITH_TILES, body))
        for name, body in tiles.bodies(op).items()
    }
    assert not made["tile_load"]
    apart, in_turn = made["tile_product"], made["tile_latency"]
    assert len({instruction for instruction, *_ in (*apart, *in_turn)}) == 1
    assert len({total for *_, total in apart}) == len(apart) == amx.REGISTERS // 2
    assert len({total for *_, total in in_turn}) == 1 < len(in_turn)


def test_tiles_are_loaded_from_places_of_their_own() -> None:
    text = assembly(WITH_TILES, tiles.tile_load)
    assert len(set(re.findall(r"%tmm\d", text))) == len(re.findall(r"\ttileloadd\t", text)) == amx.REGISTERS
    assert text.index("tilerelease") > text.rindex("\ttileloadd\t")


def test_sums_that_are_moved_are_more_than_the_first_cache_holds() -> None:
    text = assembly(WITH_TILES, tiles.bodies(min(WITH_TILES.matrix_dots, key=str))["tile_moved"])
    steps = re.findall(r"\t(tileloadd|tdp|tilestored)\w*\t", text)
    sums, half = steps.count("tilestored"), amx.REGISTERS // 2
    assert sums * amx.BYTES > WITH_TILES.l1
    assert steps.count("tdp") == tiles.STEPS * sums
    block = ["tileloadd"] * half + (["tileloadd"] * half + ["tdp"] * half) * tiles.STEPS + ["tilestored"] * half
    assert steps == block * (sums // half)


@pytest.mark.skipif(not process_target().matrix_dots, reason="this processor has no matrix units")
def test_they_run_and_take_time() -> None:
    bodies = tiles.bodies(min(process_target().matrix_dots, key=str))
    watch = Stopwatch(process_target(), bodies, storage(1 << 16))
    assert all(watch.once(name, 10) > 0 for name in bodies)
