"""One schedule for the sizes of a bucket."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansorlite as al
from ansorlite.api.shapes import BucketProgram, ShapeSet, tune_shapes
from ansorlite.errors import ArgumentError
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import host
from tests.workloads import matmul

SIZES = (33, 48, 60, 130)


def task(size: int) -> al.Task:
    return al.Task(matmul(size, 24, 16), host(1))


def test_a_bucket_shares_what_is_best_over_its_sizes(tmp_path: Path) -> None:
    shapes = ShapeSet({size: task(size) for size in SIZES}, {48: 3.0})
    assert shapes.buckets == {(32, 64): (33, 48, 60), (128, 256): (130,)}
    timed: list[int] = []

    def clock(kernel: Kernel) -> float:
        timed.append(kernel.inputs[0].shape[0])
        return 1e-6 * len(timed)

    found = tune_shapes(shapes, trials=8, database=tmp_path / "t.db", clock=clock)
    first, second = found[32, 64], found[128, 256]
    assert (first.tuned, second.tuned) == (48, 130)
    assert timed[:3] == [33, 48, 60]
    # Times rise from call to call: the first program is the best of both buckets.
    assert first.seconds == pytest.approx({33: 1e-6, 48: 2e-6, 60: 3e-6})
    rng = np.random.default_rng(0)
    for program in found.values():
        for size, trace in program.traces.items():
            a, b = rng.random((size, 16), dtype=np.float32), rng.random((16, 24), dtype=np.float32)
            np.testing.assert_allclose(al.replay(task(size), trace)(a, b), a @ b, rtol=1e-4)
    again = tune_shapes(shapes, trials=8, database=tmp_path / "t.db")
    assert again[32, 64].traces.keys() == first.traces.keys()
    assert all(seconds > 0 for program in again.values() for seconds in program.seconds.values())


def test_regret_is_beside_each_sizes_own() -> None:
    program = BucketProgram(48, {33: "", 48: ""}, {33: 1.2, 48: 2.0})
    assert program.regret({33: 1.0, 48: 2.0}) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("tasks", "weights", "why"),
    [
        ({}, None, "needs a size at least"),
        ({-1: task(8)}, None, "whole number, not below 0"),
        ({True: task(8)}, None, "whole number, not below 0"),
        ({8: "task"}, None, "size 8 is of str"),
        ({8: task(8)}, {9: 1.0}, "the weight of size 9 is 1.0"),
        ({8: task(8)}, {8: 0.0}, "weights above 0"),
        ({8: task(8)}, {8: float("nan")}, "weights above 0"),
    ],
)
def test_what_is_no_set_of_shapes_is_one_sentence(tasks: Any, weights: Any, why: str) -> None:
    with pytest.raises(ArgumentError, match=why) as caught:
        ShapeSet(tasks, weights)
    assert "\n" not in str(caught.value)
