"""Contracts of programs that matrix units run: numpy = interpreter, with threads in any order = a CPU = the machine for PTX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.printer import text
from ansorlite.loops.simplify import simplify
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import Drawn, budget, reproducer, seeds, times
from tests.contracts.test_gpu import check_rows
from tests.contracts.test_right_numbers import poisoned
from tests.on_gpu import PROCESSORS, assembled, compiled, disassembled, launched, run
from tests.products import PRODUCTS, SMALL, WIDE, convolution, product
from tests.ptx_machine import PtxError, launch
from tests.strategies import Draw, arrays_for, assert_close

named = pytest.mark.parametrize("name", PRODUCTS)


#: Small ones with 64 rows, for warpgroups.
WIDE_PRODUCTS: Final[Mapping[str, Callable[[], ComputeDAG]]] = {
    "float16, a batch, transposed": lambda: product(64, 16, 32, "float16", batch=2, transposed="A"),
    "bfloat16, uneven": lambda: product(70, 16, 17, "bfloat16", transposed="B"),
    "int8": lambda: product(64, 32, 40, "int8"),
    "float16, uneven columns": lambda: product(64, 41, 24, "float16"),
    "convolution": lambda: convolution(1, 4, 9, 16, 2, "float16", last=True),
    "convolution, uneven channels": lambda: convolution(1, 4, 9, 20, 2, "float16", last=True),
}
HOPPER: Final = resolve("h100")


def multiplied(dag: ComputeDAG, target: Target = SMALL) -> list[Sketch]:
    """The sketches of a computation that use a unit; there are others, too."""
    found = derive(Task(dag, target))
    units = [sketch for sketch in found if "matrix_unit" in sketch.text]
    assert 0 < len(units) < len(found)
    return units


@named
def test_right_numbers(name: str) -> None:
    dag, rng = PRODUCTS[name](), np.random.default_rng(31)
    check_rows(dag, multiplied(dag), times(2), rng)


@named
def test_keys_tell_programs_apart(name: str) -> None:
    dag, rng = PRODUCTS[name](), np.random.default_rng(32)
    for sketch in multiplied(dag):
        space = TileSpace(sketch)
        rows = space.sample(5, rng)
        rows = np.unique(np.concatenate([rows, space.mutate(rows, rng), space.neighbours(rows[0])[:5]]), axis=0)
        rows = rows[space.valid(rows)]
        texts, keys = [text(sketch.lower(row)) for row in rows], [key.tobytes() for key in space.canonical(rows)]
        for number, other in combinations(range(len(rows)), 2):
            with reproducer(dag, sketch, rows[number], rows[other]):
                assert (texts[number] == texts[other]) == (keys[number] == keys[other])


@named
def test_traces_make_the_same_programs_again(name: str) -> None:
    dag, rng = PRODUCTS[name](), np.random.default_rng(33)
    for sketch in multiplied(dag):
        (row,) = TileSpace(sketch).sample(1, rng)
        candidate = sketch.candidate(row)
        assert text(sketch_of(Task(dag, SMALL), candidate).lower(())) == text(sketch.lower(row))
        found = sketch.row_of(candidate)
        assert found is not None
        np.testing.assert_array_equal(sketch.canonical(np.array([found])), sketch.canonical(np.array([row])))


@pytest.mark.parametrize("dag", [product(1000, 1000, 1000, "bfloat16"), product(250, 100, 200, "float16")])
def test_columns_of_any_number_are_for_warpgroups(dag: ComputeDAG) -> None:
    """Where there are as many as one instruction has; older machine code has the units of warps."""

    def units(target: str) -> set[str]:
        found = (re.search(r"(?:wg)?mma(?=\.m)", sketch.text) for sketch in multiplied(dag, resolve(target)))
        return {each[0] for each in found if each is not None}

    assert units("h100") == {"wgmma", "mma"}
    assert units("sm_90") == units("a100") == {"mma"}


@pytest.mark.parametrize("name", WIDE_PRODUCTS)
def test_warpgroups_multiply_what_lies_in_shared_memory(name: str) -> None:
    dag, rng = WIDE_PRODUCTS[name](), np.random.default_rng(36)
    (sketch,) = multiplied(dag, WIDE)
    check_rows(dag, [sketch], times(1), rng, HOPPER)
    (row,) = TileSpace(sketch).sample(1, rng)
    ptx, _ = compiled(simplify(sketch.lower(row)), HOPPER)
    assert "wgmma.mma_async.sync.aligned.m64n" in ptx
    for report in assembled(ptx, "sm_90a").values():
        assert not report.spilled


@st.composite
def random_products(draw: Draw) -> Drawn:
    dtype = draw(st.sampled_from(("float16", "bfloat16", "int8")))
    if draw(st.booleans()):
        n, c, size, f = (draw(st.sampled_from(few)) for few in ((1, 2), (3, 8, 16), (6, 7), (8, 11, 16)))
        shape = {"last": draw(st.booleans()), "stride": draw(st.integers(1, 2))}
        return Drawn(convolution(n, c, size, f, draw(st.sampled_from((1, 3))), dtype, **shape))
    m, n, k = draw(st.integers(16, 40)), draw(st.integers(16, 40)), draw(st.integers(17, 50))
    transposed, batch = draw(st.sampled_from(("", "A", "B", "AB"))), draw(st.integers(0, 2))
    return Drawn(product(m, n, k, dtype, transposed=transposed, batch=batch, end=draw(st.booleans())))


@budget(8)
@given(random_products(), seeds)
def test_random_products(drawn: Drawn, seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = [sketch for sketch in derive(Task(drawn.dag, SMALL)) if "matrix_unit" in sketch.text]
    check_rows(drawn.dag, units[:1], 1, rng)


@pytest.mark.parametrize("name", ["float16", "float16, both transposed", "bfloat16", "int8", "convolution, channels last"])
def test_warps_multiply_and_load_rows(name: str) -> None:
    """By the unit's instruction, and where all lies evenly every word by ldmatrix; as ptxas sees it, without spills."""
    dag, rng = PRODUCTS[name](), np.random.default_rng(34)
    (sketch,) = multiplied(dag)
    for row in TileSpace(sketch).sample(1, rng):
        ptx, _ = compiled(simplify(sketch.lower(row)))
        kind = {"int8": "m16n8k32.row.col.s32.s8.s8.s32", "bfloat16": "m16n8k16.row.col.f32.bf16.bf16.f32"}
        assert f"mma.sync.aligned.{kind.get(name, 'm16n8k16.row.col.f32.f16.f16.f32')}" in ptx
        assert "ldmatrix.sync.aligned.m8n8.x4" in ptx
        for processor in PROCESSORS:
            for report in assembled(ptx, processor).values():
                assert not report.spilled


@pytest.mark.parametrize(
    ("processor", "dtype", "unit", "there"),
    [
        ("sm_80", "float16", "mma.m16n8k16.f16", ("HMMA.16816.F32", "LDSM.16.M88.4", "LDSM.16.MT88")),
        ("sm_80", "bfloat16", "mma.m16n8k16.bf16", ("HMMA.16816.F32.BF16", "LDSM.16.M88.4", "LDSM.16.MT88")),
        ("sm_90", "int8", "mma.m16n8k32.s8", ("IMMA.16832.S8.S8", "LDSM.16.M88.4")),
        ("sm_90a", "float16", "wgmma.m64k16.f16", ("HGMMA.64x", "WARPGROUP")),
        ("sm_90a", "int8", "wgmma.m64k32.s8", ("IGMMA.64x", "WARPGROUP")),
    ],
)
def test_machine_code_has_the_units_instructions(processor: str, dtype: str, unit: str, there: tuple[str, ...]) -> None:
    target = resolve({"sm_80": "a100", "sm_90": "sm_90", "sm_90a": "h100"}[processor])
    sketch = next(each for each in multiplied(product(256, 256, 256, dtype), target) if unit in each.text)
    (row,) = TileSpace(sketch).sample(1, np.random.default_rng(38))
    code = disassembled(compiled(simplify(sketch.lower(row)), target)[0], processor)
    assert [name for name in there if name not in code] == []


def test_rows_of_padded_copies_are_in_banks_of_their_own() -> None:
    """With rows an odd number of 16 bytes apart ``ldmatrix`` takes no longer than it must, nor do stores of whole rows."""
    dag, rng = product(16, 16, 64, "float16", transposed="B"), np.random.default_rng(35)
    (sketch,) = multiplied(dag)
    choices = {"C.steps": 2, "C_a.lanes": 3, "C_b.lanes": 3}
    row = [choices.get(hole.name, 0) for hole in sketch.holes]
    inputs, outputs = arrays_for(dag, rng), [np.zeros(t.shape, np.float32) for t in dag.outputs]
    (counts,) = run(sketch.lower(row), [*inputs, *outputs])
    assert counts.wavefronts == counts.ideal_wavefronts
    plain = [1 if hole.name.endswith(".pad") else row[number] for number, hole in enumerate(sketch.holes)]
    (counts,) = run(sketch.lower(plain), [*inputs, *outputs])
    assert counts.wavefronts > counts.ideal_wavefronts


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_warpgroups_wait_once_for_the_steps_that_are_copied_at_once(dtype: str) -> None:
    """Each is a group of its own; nothing between them touches the sums, as the machine for PTX sees."""
    dag, rng = product(128, 32, 256, dtype), np.random.default_rng(40)
    sketch = next(each for each in multiplied(dag, HOPPER) if "wgmma" in each.text and "rfactor" not in each.text)
    most = 0
    for row in TileSpace(sketch).sample(16, rng):
        ptx, _ = compiled(simplify(sketch.lower(row)), HOPPER)
        products, groups, waits = (ptx.count(f"wgmma.{name}") for name in ("mma_async", "commit_group", "wait_group"))
        assert products >= groups >= waits >= 1
        if groups > max(most, waits):
            most, chosen = groups, row
    assert most > 1, "steps stand side by side"
    inputs, outputs = arrays_for(dag, rng), poisoned(dag)
    launched(kernel_module(sketch.lower(chosen)), [*inputs, *outputs], HOPPER)
    assert_close(dag, outputs, evaluate(dag, inputs))


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("fence.proxy.async.shared::cta;", "no fence.proxy.async"),
        ("wgmma.fence.sync.aligned;", "registers may not be ready"),
        ("wgmma.wait_group.sync.aligned 0;", "is read, but the product that writes it was not waited for"),
        ("bar.sync 0;", "race"),
    ],
)
def test_the_machine_misses_what_is_left_out(missing: str, why: str) -> None:
    dag, rng = product(64, 16, 64, "float16"), np.random.default_rng(37)
    (sketch,) = multiplied(dag, WIDE)
    row = [0] * len(sketch.holes)
    ptx, (kernel,) = compiled(simplify(sketch.lower(row)), HOPPER)
    ptx = ptx.replace("\t", " ").replace("  ", " ")
    assert missing in ptx
    arrays = [*arrays_for(dag, rng), *(np.zeros(t.shape, np.float32) for t in dag.outputs)]
    launch(ptx, kernel.grid, arrays, shared=kernel.shared, kernel=kernel.symbol)
    with pytest.raises(PtxError, match=why):
        launch(ptx.replace(missing, ""), kernel.grid, arrays, shared=kernel.shared, kernel=kernel.symbol)
