"""When the features know of matrix units: exactly where the emitter uses them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite import te
from ansorlite.codegen import assembly
from ansorlite.features import extract
from ansorlite.features.names import COLUMN, MATRIX
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.platforms import build, finished
from ansorlite.search.default import default_candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import resolve
from ansorlite.task import Task
from tests import workloads

SAPPHIRE: Final = resolve("sapphirerapids")
#: What it is → the computation, and threads.
CASES: Final[dict[str, tuple[Callable[[], list[te.Tensor]], int]]] = {
    "bytes": (lambda: workloads.quantised_matmul(64, 96, 128), 1),
    "bytes, by teams": (lambda: workloads.quantised_matmul(64, 96, 128), 2),
    "signed bytes": (lambda: workloads.quantised_matmul(64, 96, 128, ("int8", "int8")), 1),
    "bfloat16": (lambda: workloads.widened_matmul(64, 96, 128), 1),
    "odd": (lambda: workloads.quantised_matmul(36, 50, 72), 1),
}


def sketches(name: str) -> list[Sketch]:
    make, threads = CASES[name]
    return [s for s in derive(Task(make(), replace(SAPPHIRE, threads=threads))) if "dot_" in s.text]


def tiled(features: np.ndarray) -> np.ndarray:
    """By program: how many products of tiles."""
    result: np.ndarray = np.exp2(features[:, :, COLUMN["tile_products"]]).sum(axis=1) - features.shape[1]
    return result


@pytest.mark.parametrize("name", CASES)
def test_in_columns_as_in_the_loops_that_run(name: str) -> None:
    rng, used = np.random.default_rng(1), 0
    for sketch in sketches(name):
        # Of many rows a few of those that use tiles: most do not.
        many = TileSpace(sketch).sample(200, rng)
        products = tiled(extract(sketch, many))
        rows = np.concatenate([many[products > 0][:8], many[products == 0][:12]])
        fast = extract(sketch, rows)
        statements = [facts.name for facts in population_facts(sketch.fold(rows[0]))]
        for features, row in zip(fast, rows, strict=True):
            (slow,) = reference(finished(sketch.lower(row), sketch.target), statements, sketch.target)
            np.testing.assert_allclose(features, slow, rtol=0, atol=1e-9, err_msg=sketch.candidate(row).trace)
            used += slow[:, [COLUMN[name] for name in MATRIX]].any()
    assert used


def test_tiles_of_32_by_32_are_there_and_preferred() -> None:
    """Four registers of sums: two loads of each factor for four products, none of which waits for the one before."""
    task = Task(workloads.quantised_matmul(512, 512, 512), replace(SAPPHIRE, threads=1))
    sketch = sketch_of(task, default_candidate(task, derive(task)))
    features = extract(sketch, np.zeros((1, 0), np.int64))[0]
    (statement,) = features[features[:, COLUMN["tile_products"]] > 0]
    assert 2 ** statement[COLUMN["tile_sums"]] - 1 == pytest.approx(4)
    code = assembly(build(sketch.lower(()), task.target), task.target)
    sums = set(re.findall(r"tdpbusd\s+%tmm\d+, %tmm\d+, (%tmm\d+)", code))
    assert len(sums) == 4


def test_rows_a_power_of_two_apart_are_no_reason_for_small_tiles() -> None:
    """They push each other out of the first cache, but a tile takes whole lines of them."""
    task = Task(workloads.widened_matmul(512, 512, 4096), replace(SAPPHIRE, threads=1))
    sketch = sketch_of(task, default_candidate(task, derive(task)))
    features = extract(sketch, np.zeros((1, 0), np.int64))[0]
    (statement,) = features[features[:, COLUMN["tile_products"]] > 0]
    assert 2 ** statement[COLUMN["tile_products"]] - 1 == pytest.approx(512 * 512 * 2048 / 16**3), "all of them are whole tiles"
