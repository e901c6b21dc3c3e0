"""Rings of bulk copies: numpy = interpreter = a CPU = the machine for PTX, which misses what is left out; ptxas takes them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.nodes import Function
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import times
from tests.contracts.rings import HOPPER, check, multiplied
from tests.contracts.test_right_numbers import poisoned
from tests.contracts.test_rings import GPU, convolution, product, ringed
from tests.on_gpu import assembled, compiled, disassembled, launched
from tests.products import product as narrow_product
from tests.ptx_machine import PtxError, launch
from tests.strategies import arrays_for, assert_close

A100: Final = resolve("a100")
assert HOPPER.gpu is not None
#: One that copies all in bulk that can be.
EAGER: Final[Target] = replace(HOPPER, gpu=replace(HOPPER.gpu, bulk_bytes=16))
_BULK: Final = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize("seed", range(times(4)))
def test_rings_of_any_tiles_are_right(seed: int) -> None:
    rng = np.random.default_rng(700 + seed)
    tensors = (product(24, 32, 40), convolution(12, 16, 3))[seed % 2]
    task, s = ringed(tensors, rng)
    sketch = Sketch(s.structure, s.trace, GPU)
    rows = np.arange(sketch.holes[0].size)[:, None]
    rows = rows[TileSpace(sketch).valid(rows)]
    inputs = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, inputs)
    for row in rows[-2:]:
        outputs = poisoned(task.dag)
        launched(kernel_module(sketch.lower(row)), [*inputs, *outputs], EAGER)
        assert_close(task.dag, outputs, expected)


def tiled(stages: int, target: Target, columns: int = 64) -> tuple[Task, Function]:
    """A product whose rows of B are copied as they lie, and A turned."""
    task = Task(product(32, 2 * columns, 24), target)
    s = Schedule(task.dag, target)
    c = s.stage("C")
    (i, j), (k,) = c.axes, c.reduce_axes
    (i0, i1, i2), (j0, j1, j2), (k0, k1) = s.split(i, (None, 8, 4)), s.split(j, (None, columns // 4, 4)), s.split(k, (None, 4))
    s.reorder(i0, j0, k0, i1, j1, k1, i2, j2)
    for loops, to in (((i0, j0), "block"), ((i1, j1), "thread")):
        for loop in loops:
            s.bind(loop, to)
    s.vectorize(j2, lanes=4)
    s.unroll((k1, i2), max_steps=64)
    s.reverse_compute_at("D", j0)
    for source, layout, lanes in (("A", "transposed", 1), ("B", "plain", 4)):
        copy = s.cache_read(c, source, at=k0, layout=layout, scope="shared")
        assert copy is not None
        s.vectorize(copy.loops[-1], lanes=lanes)
    s.pipeline(k0, stages)
    return task, Sketch(s.structure, s.trace, target).lower(())


@pytest.mark.parametrize("stages", [2, 3, 6])
def test_rows_go_in_bulk_beside_what_does_not(stages: int) -> None:
    """What is turned is copied element by element, in the same groups."""
    task, function = tiled(stages, HOPPER)
    (counts,) = check(task.dag, function, np.random.default_rng(stages))
    assert counts.instructions["mbarrier"]
    ptx, _ = compiled(function, HOPPER)
    # Rows of 256 bytes, of 4 steps.
    assert _BULK in ptx
    assert "cp.async.ca.shared.global" in ptx
    for report in assembled(ptx, "sm_90a").values():
        assert not report.spilled


def test_short_rows_and_older_processors_copy_by_threads() -> None:
    for target, columns in ((HOPPER, 32), (A100, 64)):
        ptx, _ = compiled(tiled(3, target, columns)[1], target)
        assert "mbarrier" not in ptx
        assert "cp.async.cg.shared.global" in ptx


def test_barriers_take_their_room_in_shared_memory() -> None:
    """Where there is none left for them, threads copy."""
    _, function = tiled(3, HOPPER)
    _, (before,) = compiled(function, A100)
    _, (kernel,) = compiled(function, HOPPER)
    assert kernel.shared == before.shared + 64
    assert HOPPER.gpu is not None
    ptx, (full,) = compiled(function, replace(HOPPER, gpu=replace(HOPPER.gpu, block_shared=before.shared)))
    assert full.shared == before.shared
    assert "mbarrier" not in ptx


def test_warpgroups_multiply_what_was_copied_in_bulk() -> None:
    dag = narrow_product(64, 32, 96, "float16", transposed="B")
    function = multiplied(dag, "float16", 3, 1, target=EAGER)
    check(dag, function, np.random.default_rng(5), EAGER)
    ptx, _ = compiled(function, EAGER)
    assert _BULK in ptx
    assert "wgmma.mma_async" in ptx
    code = disassembled(ptx, "sm_90a")
    assert [name for name in ("HGMMA.64x", "UBLKCP", "SYNCS") if name not in code] == []


@pytest.mark.parametrize(
    ("target", "processor", "there", "not_there"),
    [(A100, "sm_80", ("LDGSTS", "LDGDEPBAR"), ("UBLKCP",)), (HOPPER, "sm_90a", ("UBLKCP", "SYNCS", "LDGSTS"), ())],
)
def test_machine_code_copies_ahead(target: Target, processor: str, there: tuple[str, ...], not_there: tuple[str, ...]) -> None:
    code = disassembled(compiled(tiled(3, target)[1], target)[0], processor)
    assert [name for name in there if name not in code] == []
    assert [name for name in not_there if name in code] == []


@pytest.mark.parametrize(
    ("pattern", "instead", "why"),
    [
        (r"@some mbarrier\.expect_tx", "@!some mbarrier.expect_tx", "was told to expect"),
        (r"@some mbarrier\.arrive[^;]*;", "", "never ends"),
        (r"@some mbarrier\.init[^;]*;", "", "no mbarrier was made there"),
        (r"fence\.proxy\.async\.shared::cta;", "", "no fence.proxy.async"),
        (
            r"mbarrier\.try_wait(\S+ landed, \[\S+\], )(%r\d+);",
            r"xor.b32 \2, \2, 1; mbarrier.try_wait\1\2;",
            "race: a copy|for its next phase",
        ),
        (r"\{[^}]*mbarrier\.try_wait[^}]*\}", "", "race: a copy|for its next phase"),
        (r"bar\.sync\s+0;", "", "race|no mbarrier was made there"),
    ],
)
def test_the_machine_misses_what_is_left_out(pattern: str, instead: str, why: str) -> None:
    task, function = tiled(3, HOPPER)
    ptx, (kernel,) = compiled(function, HOPPER)
    arrays: list[NDArray[Any]] = [*arrays_for(task.dag, np.random.default_rng(6)), *poisoned(task.dag)]
    wrong, number = re.subn(pattern, instead, ptx)
    assert number
    with pytest.raises(PtxError, match=why):
        launch(wrong, kernel.grid, arrays, shared=kernel.shared, kernel=kernel.symbol)
