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
    assert not made["tile_store"]
    apart, in_turn = made["tile_product"], made["tile_latency"]
    assert len({instruction for instruction, *_ in (*apart, *in_turn)}) == 1
    assert len({total for *_, total in apart}) == len(apart) == amx.REGISTERS // 2
    assert len({total for *_, total in in_turn}) == 1 < len(in_turn)


def test_tiles_are_moved_from_and_to_places_of_their_own() -> None:
    for body, instruction in ((tiles.tile_load, "tileloadd"), (tiles.tile_store, "tilestored")):
        text = assembly(WITH_TILES, body)
        assert len(set(re.findall(r"%tmm\d", text))) == len(re.findall(rf"\t{instruction}\t", text)) == amx.REGISTERS
        assert text.index("tilerelease") > text.rindex(f"\t{instruction}\t")


@pytest.mark.skipif(not process_target().matrix_dots, reason="this processor has no matrix units")
def test_they_run_and_take_time() -> None:
    bodies = tiles.bodies(min(process_target().matrix_dots, key=str))
    watch = Stopwatch(process_target(), bodies, storage(1 << 16))
    assert all(watch.once(name, 10) > 0 for name in bodies)
