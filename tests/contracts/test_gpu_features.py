"""Contract 3 for programs of GPUs: features of a population equal, row by row, those read off the lowered loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from hypothesis import given

from ansorlite.codegen.nvptx.bulk import plan
from ansorlite.features import extract
from ansorlite.features.gpu import GPU_COLUMN, GPU_NAMES, gpu_statements
from ansorlite.features.gpu_bulk import bulk_copy
from ansorlite.features.gpu_reference import gpu_reference
from ansorlite.features.population import NestStatements
from ansorlite.loops import passes
from ansorlite.loops.kernel_module import When, kernel_module
from ansorlite.loops.nodes import For, LoopKind, statements
from ansorlite.loops.phases import threads_of
from ansorlite.loops.simplify import simplify
from ansorlite.loops.visit import stores
from ansorlite.machine.gpu import EMULATED
from ansorlite.machine.matrix import AMPERE
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from tests import workloads
from tests.contracts.cases import LONG, Drawn, budget, computations, named, named_dag, reproducer, seeds, sketches_of, times
from tests.contracts.test_matrix_units import WIDE_PRODUCTS, multiplied, random_products
from tests.on_gpu import run
from tests.products import PRODUCTS, SMALL, WIDE, product
from tests.strategies import arrays_for

#: One that takes larger blocks, so that tiles are of more than a few elements.
GPU: Final[Target] = replace(resolve("emulated"), gpu=replace(EMULATED, block_threads=128, block_shared=32 << 10))


def check(dag: ComputeDAG, count: int, seed: int, target: Target = GPU) -> None:
    rng = np.random.default_rng(seed)
    check_sketches(dag, sketches_of(dag, target, rng), count, rng)


def check_sketches(dag: ComputeDAG, sketches: Sequence[Sketch], count: int, rng: np.random.Generator) -> None:
    for sketch in sketches:
        gpu = sketch.target.gpu
        assert gpu is not None
        rows = TileSpace(sketch).sample(count, rng)
        fast = extract(sketch, rows)
        names = gpu_statements(sketch.fold(rows[0]))
        assert fast.shape == (len(rows), len(names), len(GPU_NAMES))
        for features, row in zip(fast, rows, strict=True):
            with reproducer(dag, sketch, row):
                (slow,) = gpu_reference(kernel_module(simplify(sketch.lower(row))), names, gpu)
                wrong = ~np.isclose(features, slow, rtol=0.0, atol=1e-9)
                assert not wrong.any(), "\n".join(
                    f"{names[s]}: {GPU_NAMES[f]} is {features[s, f]} in the population, {slow[s, f]} in the loop IR"
                    for s, f in np.argwhere(wrong)
                )


@named
def test_named_computations(name: str) -> None:
    check(named_dag(name), times(6), seed=31)


@pytest.mark.parametrize("name", LONG)
def test_long_sums(name: str) -> None:
    check(ComputeDAG.of(LONG[name]()), times(3), seed=32)


@pytest.mark.parametrize("name", ["matmul of powers", "matmul int8"])
def test_copies_ahead_through_registers(name: str) -> None:
    """Where they do not land later, they are in registers meanwhile."""
    assert GPU.gpu is not None
    check(named_dag(name), times(6), seed=33, target=replace(GPU, gpu=replace(GPU.gpu, async_copies=False)))


@budget(30)
@given(computations, seeds)
def test_random_computations(drawn: Drawn, seed: int) -> None:
    check(drawn.dag, 3, seed)


# Matrix units ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_by_warps(name: str) -> None:
    check_sketches(dag := PRODUCTS[name](), multiplied(dag), times(8), np.random.default_rng(34))


@pytest.mark.parametrize("name", WIDE_PRODUCTS)
def test_products_by_warpgroups(name: str) -> None:
    check_sketches(dag := WIDE_PRODUCTS[name](), multiplied(dag, WIDE), times(8), np.random.default_rng(35))


@pytest.mark.parametrize("target", ["a100", "sm_90", "h100"])
def test_products_of_large_tiles(target: str) -> None:
    dag = product(256, 320, 192, "float16")
    check_sketches(dag, multiplied(dag, resolve(target)), times(3), np.random.default_rng(36))


@budget(10)
@given(random_products(), seeds)
def test_random_products(drawn: Drawn, seed: int) -> None:
    units = [sketch for sketch in derive(Task(drawn.dag, SMALL)) if "matrix_unit" in sketch.text]
    check_sketches(drawn.dag, units, 2, np.random.default_rng(seed))


def test_what_units_are_given_is_what_the_machine_counts() -> None:
    """Rows of padded copies are in banks of their own, others are not: as the machine for PTX has it."""
    dag, rng = product(16, 16, 64, "float16", transposed="B"), np.random.default_rng(37)
    (sketch,) = multiplied(dag)
    assert SMALL.gpu is not None
    for pad in (0, 1):
        choices = {"C.steps": 2, "C_a.lanes": 3, "C_b.lanes": 3, "C_a.pad": pad, "C_b.pad": pad}
        row = np.array([choices.get(hole.name, 0) for hole in sketch.holes])
        counted = np.exp2(extract(sketch, row[None])[0]) - 1
        arrays = [*arrays_for(dag, rng), *(np.zeros(t.shape, np.float32) for t in dag.outputs)]
        (counts,) = run(sketch.lower(row), arrays)
        # Of one warp of a block each, in all blocks.
        assert (counted[:, GPU_COLUMN["threads"]] == 32).all()
        passes = counted[:, GPU_COLUMN["wavefronts"]] * counted[:, GPU_COLUMN["blocks"]]
        np.testing.assert_allclose(passes.sum(), counts.wavefronts)


# Bulk copies -----------------------------------------------------------------------------------------------------------

assert GPU.gpu is not None
#: One that copies nearly all in bulk that can be: but for 16 bytes of swizzled rows.
EAGER: Final[Target] = replace(GPU, gpu=replace(GPU.gpu, bulk_bytes=32, matrix=AMPERE))
BULK: Final[Mapping[str, Callable[[], ComputeDAG]]] = {
    "uneven": lambda: ComputeDAG.of(workloads.matmul(60, 92, 44)),
    "steps": lambda: ComputeDAG.of(workloads.matmul(50, 64, 36)),
    "convolution": lambda: ComputeDAG.of(workloads.conv2d(1, 4, 6, 16, 8)),
    "halves": lambda: product(64, 96, 64, "float16", transposed="A"),
}


@pytest.mark.parametrize("name", BULK)
def test_bulk_copies(name: str) -> None:
    rng = np.random.default_rng(38)
    check_sketches(dag := BULK[name](), derive(Task(dag, EAGER)), times(6), rng)


@budget(10)
@given(computations, seeds)
def test_bulk_copies_of_random_computations(drawn: Drawn, seed: int) -> None:
    check(drawn.dag, 2, seed, EAGER)


def test_bulk_copies_are_those_of_the_emitter() -> None:
    dag, rng, found = BULK["halves"](), np.random.default_rng(39), set[int]()
    assert EAGER.gpu is not None
    for sketch in derive(Task(dag, EAGER)):
        for row in TileSpace(sketch).sample(6, rng):
            (nest,) = sketch.fold(row).nests
            view = NestStatements(nest, sketch.fold(row))
            copies = {stage.tensor.name: bulk_copy(view, stage, EAGER.gpu) for stage in nest.attached}
            (main,) = kernel_module(passes.run(simplify(sketch.lower(row)), (passes.SWIZZLE,), EAGER)).at(When.CALL)
            blocks = [each for each in statements(main.body) if isinstance(each, For) and each.kind is LoopKind.BLOCK]
            plans = [plan(loop, EAGER.gpu, threads_of(loop)) for loop in blocks]
            phases = [phase for planned in plans if planned is not None for phase in (*planned.copies, *planned.boxes)]
            emitted = {store.buffer.name for phase in phases for store in stores(phase)}
            assert {name for name, copy in copies.items() if copy is not None and copy.there} == emitted
            found.add(len(emitted))
    assert found == {0, 1, 2}
