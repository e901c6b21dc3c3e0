"""Constants that are fitted to programs whose times follow from other constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorlite.calibration.fit import Sample, fit, padded, scores
from ansorlite.calibration.tasks import small_computations
from ansorlite.cost_model.draft import Draft
from ansorlite.features import extract
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import WIDE
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests import targets

#: A machine whose loops and loads are slow.
TRUE = replace(WIDE, branch=9.0, load=2.0, broadcast=2.5, l2_bytes=16.0)


def _sample(number: int, machine: MachineConstants) -> Sample:
    task = Task(small_computations()[number], replace(targets.WIDE, threads=1))
    found = []
    for sketch in derive(task)[:2]:
        rows = TileSpace(sketch).sample(24, np.random.default_rng(number))
        found.append(extract(sketch, rows))
    features = padded(found)
    return Sample(features, np.exp(-scores(task.target, machine, Sample(features, np.ones(len(features))))))


def test_a_statement_that_is_missing_takes_no_time() -> None:
    task = Task(small_computations()[0], replace(targets.WIDE, threads=1))
    sketch = derive(task)[0]
    features = extract(sketch, TileSpace(sketch).sample(8, np.random.default_rng(0)))
    draft = Draft(task.target)
    assert np.allclose(draft(padded([features], features.shape[1] + 2)), draft(features), rtol=1e-12)


def test_a_fit_finds_what_explains_the_times() -> None:
    samples = [_sample(number, TRUE) for number in (0, 2, 3, 6, 7, 10)]
    row, before, after = fit(replace(targets.WIDE, threads=1), WIDE, samples)
    assert after > before
    assert row.branch > 2 * WIDE.branch
    assert row.load > 1.5 * WIDE.load


def test_what_is_right_already_stays() -> None:
    samples = [_sample(number, WIDE) for number in (0, 3, 7, 10)]
    row, before, after = fit(replace(targets.WIDE, threads=1), WIDE, samples)
    assert before == 1.0
    assert after <= before
    assert row == WIDE
