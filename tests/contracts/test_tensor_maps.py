"""Rings whose copies tensor maps do: numpy = interpreter = a CPU = the machine for PTX, which misses what is left out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorlite.codegen.limits import Limits
from ansorlite.codegen.nvptx import compile as nvptx
from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.codegen.object import DeviceLaunch
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.simplify import simplify
from ansorlite.platforms import build
from ansorlite.runtime.device_kernel import DeviceKernel
from ansorlite.runtime.devices import device_of
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import times
from tests.contracts.rings import HOPPER, check, multiplied
from tests.contracts.test_right_numbers import poisoned
from tests.cupy_stand_in import StandIn
from tests.on_gpu import assembled, compiled, disassembled, run
from tests.products import convolution, product
from tests.ptx_machine import PtxError, launch
from tests.strategies import arrays_for, assert_close

assert HOPPER.gpu is not None
#: One that has none.
WITHOUT: Final[Target] = replace(HOPPER, gpu=replace(HOPPER.gpu, map_bytes=0))
_TENSOR: Final = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("shape", "dtype", "stages", "steps", "batch"),
    [
        ((64, 32, 96), "float16", 3, 1, 0),
        ((100, 40, 104), "float16", 3, 2, 0),  # tiles shifted inwards, and zeros behind the last step
        ((70, 33, 208), "bfloat16", 2, 4, 0),
        ((64, 48, 80), "int8", 4, 1, 0),
        ((80, 32, 48), "float16", 2, 1, 2),  # all rows of a batch are a side
    ],
)
def test_both_factors_come_by_maps(shape: tuple[int, int, int], dtype: str, stages: int, steps: int, batch: int) -> None:
    dag = product(*shape, dtype, transposed="B", batch=batch)
    function = multiplied(dag, dtype, stages, steps)
    check(dag, function, np.random.default_rng(3))
    ptx, _ = compiled(function, HOPPER)
    assert _TENSOR in ptx
    assert "cp.async.c" not in ptx


@pytest.mark.parametrize("seed", range(times(2)))
def test_products_of_any_size_are_right(seed: int) -> None:
    rng = np.random.default_rng(900 + seed)
    m, n, k = int(rng.integers(64, 150)), int(rng.integers(32, 80)), 8 * int(rng.integers(3, 15))
    dag = product(m, n, k, "float16", transposed=("B", "")[seed % 2])
    function = multiplied(dag, "float16", int(rng.choice([2, 3, 5])), int(rng.choice([1, 2, 4])), int(rng.choice([1, 2])))
    check(dag, function, rng)
    ptx, _ = compiled(function, HOPPER)
    assert _TENSOR in ptx
    # What is turned is stored by threads, in the same groups.
    assert ("st.shared.b16" in ptx) == (seed % 2 == 1)


def test_rows_that_do_not_begin_at_multiples_of_16_bytes_have_no_maps() -> None:
    ptx, _ = compiled(multiplied(product(64, 32, 100, "float16", transposed="B"), "float16", 3, 1), HOPPER)
    assert "tensormap" not in ptx
    assert "cp.async.ca.shared.global" in ptx


@pytest.mark.parametrize("groups", [1, 2])
def test_warps_that_copy_single_elements_meet_the_others(groups: int) -> None:
    """Halves that make no words are loaded and stored under conditions: by two warps; the others are at the product by then."""
    dag = product(128, 41, 101, "float16", transposed="B")
    function = multiplied(dag, "float16", 5, 1, groups)
    inputs, outputs = arrays_for(dag, np.random.default_rng(4)), poisoned(dag)
    run(function, [*inputs, *outputs], HOPPER)
    assert_close(dag, outputs, evaluate(dag, inputs))
    ptx, _ = compiled(function, HOPPER)
    assert "cp.async" not in ptx
    assert "ld.global.nc.b16" in ptx


@pytest.mark.parametrize(
    "dag", [product(256, 64, 96, "float16", transposed="B"), convolution(1, 16, 10, 32, 3, "float16", last=True)]
)
def test_programs_of_the_space_take_maps(dag: ComputeDAG) -> None:
    """Whatever the vectors are by which threads would copy; windows of a convolution, and digits of its steps, are boxes, too."""
    (sketch, *_) = (each for each in derive(Task(dag, HOPPER)) if "wgmma" in each.text)
    rng = np.random.default_rng(7)
    rows = TileSpace(sketch).sample(40, rng)
    stages = next(number for number, hole in enumerate(sketch.holes) if hole.name.endswith(".stages"))
    rows = rows[rows[:, stages] > 0][:2]
    for row in rows:
        function = simplify(sketch.lower(row))
        inputs, outputs = arrays_for(dag, rng), poisoned(dag)
        run(function, [*inputs, *outputs], HOPPER)
        assert_close(dag, outputs, evaluate(dag, inputs))
        assert "cp.async.bulk.tensor." in compiled(function, HOPPER)[0]


def test_machine_code_asks_for_boxes() -> None:
    """One thread does; no other instruction copies to shared memory, and nothing is spilled."""
    function = multiplied(product(256, 64, 512, "float16", transposed="B"), "float16", 4, 2, groups=2)
    ptx, (kernel,) = compiled(function, HOPPER)
    code = disassembled(ptx, "sm_90a")
    assert [name for name in ("UTMALDG.3D", "UTMACCTL.IV", "HGMMA.64x", "SYNCS") if name not in code] == []
    assert [name for name in ("LDGSTS", "UBLKCP") if name in code] == []
    assert not assembled(ptx, "sm_90a")[kernel.symbol].spilled
    code = disassembled(compiled(function, WITHOUT)[0], "sm_90a")
    assert "LDGSTS" in code
    assert "UTMALDG" not in code


def test_maps_have_room_of_their_own() -> None:
    """In shared memory, and in the workspace: for each block; where there is none left in shared memory, threads copy."""
    assert HOPPER.gpu is not None
    dag = product(128, 64, 96, "float16", transposed="B")
    function = multiplied(dag, "float16", 3, 2)
    _, (before,) = compiled(function, WITHOUT)
    _, (kernel,) = compiled(function, HOPPER)
    # Two maps and the barriers; what is copied to begins at a multiple of 128 bytes.
    assert kernel.shared == before.shared + 2 * 128 + 64 + 64
    (scratch,) = kernel.scratch
    assert scratch.nbytes == (4 * 2 + 1) * 128
    compact, (full,) = compiled(function, replace(HOPPER, gpu=replace(HOPPER.gpu, block_shared=kernel.shared - 64)))
    assert full.shared == before.shared
    assert "cp.async.bulk.tensor" not in compact
    made = nvptx.compile(kernel_module(function), HOPPER, Limits(2_000_000))
    (launched,) = made.launches
    assert isinstance(launched, DeviceLaunch)
    # The last parameter is in the workspace, which is behind the arrays.
    assert launched.arguments[-1].base == 4
    assert launched.workspace >= launched.arguments[-1].offset + scratch.nbytes
    assert ".version 8.6" in made.text


def test_launches_give_maps_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the runtime, which knows nothing of maps; other arrays in another call, in the same workspace."""
    monkeypatch.setenv(ASSEMBLER_VARIABLE, "driver")
    dag = product(100, 40, 104, "float16", transposed="B")
    function = multiplied(dag, "float16", 3, 2)
    rng = np.random.default_rng(8)
    device_of.cache_clear()
    with StandIn().installed():
        made = DeviceKernel(build(function, HOPPER), function.params, HOPPER)
        for _ in range(2):
            inputs = arrays_for(dag, rng)
            found = made(*inputs)
            assert isinstance(found, np.ndarray)
            assert_close(dag, [found], evaluate(dag, inputs))
    device_of.cache_clear()


@pytest.mark.parametrize(
    ("pattern", "instead", "why"),
    [
        (r"@some fence\.proxy\.tensormap[^;]*;", "", "no fence.proxy.tensormap"),
        (r"@some tensormap\.cp_fenceproxy[^;]*;", "", "no tensor map was published"),
        (r"@some st\.shared\.v4[^;]*;", "", "not made from zeros"),
        (r"@some tensormap\.replace\.tile\.fill_mode[^;]*;", "", "fill_mode of a tensor map was not set"),
        (r"(tensormap\.replace\.tile\.rank\S* \S+) 2;", r"\1 1;", "a box of 3 sides by a tensor map of 2"),
        (r"(tensormap\.replace\.tile\.global_stride\S* \S+ 0,) 208;", r"\1 200;", "misaligned"),
        (r"(tensormap\.replace\.tile\.global_dim\S* \S+ 2,) 13;", r"\1 1000;", "out of bounds"),
        (r"(tensormap\.replace\.tile\.box_dim\S* \S+ 1,) 64;", r"\1 32;", "was told to expect"),
        (r"@some mbarrier\.expect_tx", "@!some mbarrier.expect_tx", "was told to expect"),
        (r"\{[^}]*mbarrier\.try_wait[^}]*\}", "", "race: a copy|for its next phase"),
        (r"bar\.sync\s+0;", "", "race|no tensor map was published|no mbarrier was made there"),
    ],
)
def test_the_machine_misses_what_is_left_out(pattern: str, instead: str, why: str) -> None:
    dag = product(100, 40, 104, "float16", transposed="B")
    ptx, (kernel,) = compiled(multiplied(dag, "float16", 3, 2), HOPPER)
    (scratch,) = kernel.scratch
    maps = np.zeros(scratch.nbytes, np.uint8)
    arrays: list[NDArray[Any]] = [*arrays_for(dag, np.random.default_rng(6)), *poisoned(dag), maps]
    wrong, number = re.subn(pattern, instead, ptx)
    assert number
    with pytest.raises(PtxError, match=why):
        launch(wrong, kernel.grid, arrays, shared=kernel.shared, kernel=kernel.symbol)
