"""``python -m benchmarks.gpu.rates``, and what it counts: legal rows that are unlike each other."""

from __future__ import annotations

import json

import numpy as np
from click.testing import CliRunner

from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import resolve
from ansorlite.task import Task
from benchmarks.gpu.rates import main
from tests.contracts.cases import LONG


def test_the_command_prints_a_rate() -> None:
    done = CliRunner().invoke(main, ["sum of squares", "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)["sum of squares"]
    assert found["rate"] > 0
    assert 0 < found["legal"] <= 1
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2


def test_rows_that_are_drawn_are_unlike_each_other_where_few_are_legal() -> None:
    for sketch in derive(Task(LONG["product"](), resolve("emulated"))):
        space = TileSpace(sketch)
        rows = space.sample(1000, np.random.default_rng(7))
        assert space.valid(rows).all()
        legal = space.valid(np.random.default_rng(8).integers(space.sizes, size=(20_000, len(space.sizes)))).mean()
        assert len(np.unique(rows, axis=0)) > min(700, 0.3 * legal * space.sizes.prod(dtype=np.float64))
