"""Contract 3 for programs of GPUs: features of a population equal, row by row, those read off the lowered loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from hypothesis import given

from ansorlite.features import extract
from ansorlite.features.gpu import GPU_NAMES, gpu_statements
from ansorlite.features.gpu_reference import gpu_reference
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.simplify import simplify
from ansorlite.machine.gpu import EMULATED
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.target import Target, resolve
from ansorlite.te.dag import ComputeDAG
from tests.contracts.cases import LONG, Drawn, budget, computations, named, named_dag, reproducer, seeds, sketches_of, times

#: One that takes larger blocks, so that tiles are of more than a few elements.
GPU: Final[Target] = replace(resolve("emulated"), gpu=replace(EMULATED, block_threads=128, block_shared=32 << 10))


def check(dag: ComputeDAG, count: int, seed: int, target: Target = GPU) -> None:
    rng = np.random.default_rng(seed)
    assert target.gpu is not None
    for sketch in sketches_of(dag, target, rng):
        rows = TileSpace(sketch).sample(count, rng)
        fast = extract(sketch, rows)
        names = gpu_statements(sketch.fold(rows[0]))
        assert fast.shape == (len(rows), len(names), len(GPU_NAMES))
        for features, row in zip(fast, rows, strict=True):
            with reproducer(dag, sketch, row):
                (slow,) = gpu_reference(kernel_module(simplify(sketch.lower(row))), names, target.gpu)
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
