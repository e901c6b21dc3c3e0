"""Register tiles of products: those of good libraries can be said, and the tile of the default program stays in registers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansorlite.codegen import assembly
from ansorlite.platforms import build
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces.derivation import derive
from ansorlite.target import NAMED, Target
from ansorlite.task import Task
from tests.unit.sketch.rows import Choice, row_of
from tests.workloads import matmul

#: Rows, columns, and the panels of each that libraries use: machine, register tile, (rows of A that stay in the second
#: cache, steps of the sum). BLIS and OpenBLAS on Haswell and Zen, on Skylake with AVX-512, and on Neoverse.
TILES = [
    ("x86-64-v3", (6, 16), (96, 256)),
    ("x86-64-v3", (4, 24), (96, 256)),
    ("x86-64-v4", (14, 32), (112, 256)),
    ("x86-64-v4", (6, 64), (96, 384)),
    ("aarch64", (8, 12), (128, 512)),
    ("aarch64", (12, 8), (96, 256)),
]
#: How fused multiply-adds are called.
MULTIPLY_ADD = re.compile(r"\b(vfmadd\w+|fmla)\b")
STACK = re.compile(r"\(%rsp|\[sp")


def target(name: str) -> Target:
    return replace(NAMED[name], threads=2)


def product(name: str, extent: int) -> tuple[Task, tuple[Sketch, ...]]:
    task = Task(matmul(extent, extent, extent), target(name))
    return task, derive(task)


@pytest.mark.parametrize("extent", [1000, 1009, 1024])
@pytest.mark.parametrize(("name", "tile", "panel"), TILES)
def test_the_tiles_of_libraries_can_be_said(name: str, tile: tuple[int, int], panel: tuple[int, int], extent: int) -> None:
    _, sketches = product(name, extent)
    packed = max(sketches, key=lambda sketch: len(sketch.holes))
    spans = {hole.name[-1]: hole.table.spans.tolist() for hole in packed.holes if hole.table is not None}
    rows, columns = tile
    kept, length = panel
    assert any(chain[-2] == rows and kept in chain for chain in spans["i"])
    assert any(chain[-2] == columns for chain in spans["j"])
    assert [extent, length, 1] in spans["k"]


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_the_default_product_stays_in_registers(name: str) -> None:
    task, sketches = product(name, 1024)
    busiest = _busiest_loop(task, default_candidate(task, sketches))
    assert len(MULTIPLY_ADD.findall(busiest)) >= 8
    assert not STACK.search(busiest)


@pytest.mark.parametrize("tile", [(2, 48), (3, 32), (4, 24), (6, 16)])
def test_twelve_accumulators_of_sixteen_registers_leave_room_for_both_operands(tile: tuple[int, int]) -> None:
    task, sketches = product("x86-64-v3", 1024)
    packed = max(sketches, key=lambda sketch: len(sketch.holes))
    chains = {"i": (96, tile[0]), "j": (tile[1], tile[1]), "k": (256, 1)}
    tiles: dict[str, Choice] = {}
    for hole in packed.holes:
        if hole.table is not None:
            spans = [tuple(chain[-3:-1]) for chain in hole.table.spans.tolist()]
            found = spans.index(chains[hole.name[-1]] if hole.name[-1] != "k" else (1024, 256))
            tiles[hole.name.replace(".", "__")] = tuple(hole.table.trips[found].tolist())
    row = row_of(packed, **tiles, C_local__lanes=8, C_local__unroll=64, C_local__at="j1")
    busiest = _busiest_loop(task, packed.candidate(row))
    assert len(MULTIPLY_ADD.findall(busiest)) == 12 * 4, "four steps at a time"
    assert not STACK.search(busiest)


def _busiest_loop(task: Task, candidate: Candidate) -> str:
    """The innermost loop with most multiply-adds: from its label to the jump back there."""
    text = assembly(build(lower(task, candidate), task.target), task.target)
    blocks = re.findall(r"^(\.LBB\w+):(.*?)(?=^\.LBB|\Z)", text, re.MULTILINE | re.DOTALL)
    loops = [body[: body.rindex(label)] for label, body in blocks if label in body]
    return max(loops, key=lambda loop: len(MULTIPLY_ADD.findall(loop)))
