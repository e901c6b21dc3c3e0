"""What an assembler says of some programs of a sketch, in the features of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from ansorlite.best.defaults import Defaults
from ansorlite.cache.disk import NoCache
from ansorlite.codegen.object import Report
from ansorlite.cost_model import RandomModel
from ansorlite.cost_model.draft_gpu import GpuDraft
from ansorlite.features.gpu import GPU_COLUMN, gpu_features
from ansorlite.features.programs import ProgramSpace
from ansorlite.features.reported import Reported
from ansorlite.machine.gpu import H100
from ansorlite.records.measurement import Measurement, Outcome
from ansorlite.search.random import RandomSearch
from ansorlite.sketch.gpu_limits import most_registers
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import resolve
from ansorlite.task import Task
from ansorlite.tuner.start import task_state
from tests import workloads

TARGET: Final = replace(resolve("emulated"), gpu=H100)
TASK: Final = Task(workloads.matmul(256, 256, 256), TARGET)


def _rows(sketch: Sketch) -> np.ndarray:
    return TileSpace(sketch).sample(20, np.random.default_rng(3))


def test_reports_of_twice_the_estimate_move_registers_and_the_blocks_that_fit() -> None:
    (sketch, *_) = derive(TASK)
    space, rows = ProgramSpace(sketch), _rows(sketch)
    before = space.programs(rows).features
    for row in rows:
        estimated = most_registers(sketch.fold(row), H100)
        space.report(tuple(row), 2.0 * float(estimated))  # type: ignore[arg-type]
    assert space.reported.ratio == pytest.approx(2 ** (20 / 23)), "the estimate has a voice, too"
    after = space.programs(rows).features
    changed = {name for name, column in GPU_COLUMN.items() if (before[:, :, column] != after[:, :, column]).any()}
    assert changed == {"registers", "resident"}
    there = np.exp2(after[:, :, GPU_COLUMN["registers"]]) - 1
    assert there == pytest.approx((np.exp2(before[:, :, GPU_COLUMN["registers"]]) - 1) * space.reported.ratio)
    assert (after[:, :, GPU_COLUMN["resident"]] <= before[:, :, GPU_COLUMN["resident"]]).all()
    assert (GpuDraft(TARGET).seconds(after) >= GpuDraft(TARGET).seconds(before)).all()
    assert (GpuDraft(TARGET).seconds(after) > GpuDraft(TARGET).seconds(before)).any()


def test_reports_that_say_what_was_estimated_change_nothing() -> None:
    for sketch in derive(TASK):
        rows = _rows(sketch)
        features = ProgramSpace(sketch).programs(rows).features
        np.testing.assert_allclose(Reported(5, 0.0).corrected(features, H100), features, rtol=0, atol=1e-9)
        assert len(gpu_features(sketch.fold(rows[0]), H100)) == features[0].size


def test_what_a_measurement_says_reaches_the_space_of_its_program() -> None:
    state = task_state(
        TASK,
        (1,),
        RandomSearch,
        RandomModel(np.random.default_rng(0)),
        np.random.default_rng(1),
        Defaults(NoCache(), None),
        draft=False,
    )
    space = state.spaces[0]
    row = tuple(_rows(space.sketch)[0].tolist())
    plain = Measurement(space.candidate(row), Outcome.OK, latency=1.0)
    state.add(plain)
    assert space.reported == Reported(), "nobody told"
    state.add(replace(plain, reports=(Report(32, 0, 0), Report(255, 80, 40))))
    assert space.reported.programs == 1
    assert sum(each.reported.programs for each in state.spaces) == 1
    wanted = 255 + 80 / 8
    estimated = float(most_registers(space.sketch.fold(row), H100))  # type: ignore[arg-type]
    assert space.reported.ratio == pytest.approx((wanted / estimated) ** (1 / 4))
