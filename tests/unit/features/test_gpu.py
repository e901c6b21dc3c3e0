"""Features of programs for GPUs, and the estimate that is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite.cost_model.draft_gpu import GpuDraft
from ansorlite.cost_model.explain import explain
from ansorlite.errors import TargetError
from ansorlite.features.extract import extract
from ansorlite.features.gpu import GPU_COLUMN, GPU_NAMES, gpu_features, gpu_statements
from ansorlite.machine.gpu import EMULATED, H100
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import resolve
from ansorlite.task import Task
from tests import workloads
from tests.products import product
from tests.targets import WIDE

TARGET: Final = resolve("emulated")
TASKS: Final = {
    "product": workloads.matmul(64, 48, 32),
    "softmax": workloads.softmax(7, 37),
    "elements": workloads.transpose_add(13, 9),
}


def _product(sketch: Sketch) -> int:
    """The position of the statement that multiplies."""
    return gpu_statements(sketch.fold(TileSpace(sketch).sample(1, np.random.default_rng(0))[0])).index("C_local")


@pytest.mark.parametrize("name", TASKS)
def test_a_population_has_the_features_of_each_of_its_rows(name: str) -> None:
    for sketch in derive(Task(TASKS[name], TARGET)):
        rows = TileSpace(sketch).sample(6, np.random.default_rng(3))
        features = extract(sketch, rows)
        assert features.shape[2] == len(GPU_NAMES)
        for row, found in zip(rows, features, strict=True):
            np.testing.assert_allclose(np.reshape(gpu_features(sketch.fold(row), EMULATED), found.shape), found)


def test_blocks_times_steps_are_what_there_is_to_do() -> None:
    (sketch, *_) = derive(Task(TASKS["product"], TARGET))
    rows = TileSpace(sketch).sample(50, np.random.default_rng(4))
    stage = np.exp2(extract(sketch, rows)[:, _product(sketch)]) - 1
    done = stage[:, GPU_COLUMN["blocks"]] * stage[:, GPU_COLUMN["threads"]] * stage[:, GPU_COLUMN["steps"]]
    assert (done >= 64 * 48 * 32 - 0.5).all()
    assert done.min() == pytest.approx(64 * 48 * 32)


def test_the_estimate_is_no_less_than_arithmetic_takes_and_ranks() -> None:
    target = replace(TARGET, gpu=H100)
    (sketch, *_) = derive(Task(workloads.matmul(1024, 1024, 1024), target))
    rows = TileSpace(sketch).sample(2000, np.random.default_rng(5))
    seconds = GpuDraft(target).seconds(extract(sketch, rows))
    assert seconds.min() >= 2 * 1024**3 / H100.flops
    best, worst = (extract(sketch, rows[[number]])[0, _product(sketch)] for number in (seconds.argmin(), seconds.argmax()))
    assert best[GPU_COLUMN["threads"]] > worst[GPU_COLUMN["threads"]]


def test_products_of_matrix_units_are_counted_apart() -> None:
    """All of them, at the units' rate; so the estimate takes these programs for faster, and for no faster than the units are."""
    target = replace(TARGET, gpu=H100)
    plain, units = list[float](), dict[str, float]()
    for sketch in derive(Task(product(1024, 1024, 1024, "float16"), target)):
        rows = TileSpace(sketch).sample(200, np.random.default_rng(7))
        features = extract(sketch, rows)
        stage = np.exp2(features[np.arange(len(rows)), features[:, :, GPU_COLUMN["matrix"]].argmax(axis=1)]) - 1
        seconds = GpuDraft(target).seconds(features)
        if "matrix_unit" not in sketch.text:
            assert not features[:, :, GPU_COLUMN["matrix"]].any()
            plain.append(seconds.min())
            continue
        unit = next(unit for unit in H100.matrix if unit.name in sketch.text)
        done = stage[:, GPU_COLUMN["blocks"]] * stage[:, GPU_COLUMN["threads"]] * stage[:, GPU_COLUMN["matrix"]]
        assert (done * unit.rate / H100.lanes >= 1024**3 - 0.5).all()
        assert not stage[:, GPU_COLUMN["operations"]].any()
        clock = H100.flops / (2 * H100.processors * H100.lanes)
        assert seconds.min() >= 1024**3 / (unit.rate * H100.processors * clock)
        units[unit.name] = min(seconds.min(), units.get(unit.name, np.inf))
    assert len(units) == 2
    assert max(units.values()) < min(plain)


def test_what_is_of_gpus_alone_says_so() -> None:
    with pytest.raises(TargetError, match="is no GPU"):
        GpuDraft(WIDE)


def test_the_estimate_taken_apart_is_the_estimate() -> None:
    task = Task(TASKS["product"], TARGET)
    (sketch, *_) = derive(task)
    rows = TileSpace(sketch).sample(4, np.random.default_rng(6))
    for row, seconds in zip(rows, GpuDraft(TARGET).seconds(extract(sketch, rows)), strict=True):
        found = explain(task, sketch.candidate(row))
        assert [each.name for each in found.statements] == gpu_statements(sketch.fold(row))
        assert found.total == pytest.approx(1e6 * seconds)
        assert found.total == pytest.approx(sum(each.total for each in found.statements))
        assert found.regions == pytest.approx(3.0)  # of the one launch
