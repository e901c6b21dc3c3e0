"""Steps of a reduction that are left out are not counted."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.features import NAMES, extract
from ansorlite.features.names import COLUMN
from ansorlite.features.no_ops import left_out
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.platforms import finished
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.task import Task
from tests import workloads
from tests.targets import WIDE

#: Of the rows of 3 taps that walk 7 rows of outputs, by themselves: one is above them, and one below.
EACH = 1 - 2 / (7 * 3)


def convolution(tile: str, steps: int) -> tuple[Task, Candidate]:
    """The rows and columns of ``tile`` are a register tile; the taps around it are written out in so many steps."""
    inside = ", ".join(f'conv["{axis}"]' for axis in tile)
    outside = "".join(f'conv["{axis}"], ' for axis in "yz" if axis not in tile)
    trace = f"""def schedule(s):
    conv = s.stage("conv")
    s.reorder(conv["b"], {outside}conv["rc"], conv["ry"], conv["rx"], {inside}{", " if inside else ""}conv["o"])
    s.vectorize(conv["o"], lanes=8)
    s.unroll((conv["ry"], conv["rx"], {inside}{", " if inside else ""}conv["o"]), max_steps={steps})
    padded = s.stage("padded")
    s.compute_at(padded, None)"""
    return Task(workloads.conv2d(1, 2, 7, 7, 8), WIDE), Candidate(trace)


@pytest.mark.parametrize(
    ("tile", "steps", "expected"),
    [
        ("", 0, EACH * EACH),
        ("y", 0, EACH),  # no row is known, as none is written out, and each tap is needed by some
        ("y", 7, EACH),  # the taps are not known
        ("y", 63, EACH * EACH),
        ("yz", 441, EACH * EACH),
        ("yz", 0, 1),
    ],
)
def test_the_share_of_steps_that_run(tile: str, steps: int, expected: float) -> None:
    task, candidate = convolution(tile, steps)
    sketch = sketch_of(task, candidate)
    (nest,) = sketch.fold(()).nests
    assert left_out(nest).needed == pytest.approx(expected)
    features = dict(zip(NAMES, extract(sketch, np.zeros((1, 0), np.int64))[0, -1].tolist(), strict=True))
    for name in ("iterations", "mul", "cheap"):
        assert 2.0 ** features[name] - 1 == pytest.approx(8 * 7 * 7 * 2 * 3 * 3 * expected)


@pytest.mark.parametrize(
    ("tile", "steps", "unrolled"),
    [
        ("y", 7, 7),
        ("y", 63, 7),  # the columns of a row are in a loop, so which taps they need is computed: those are a loop, too
        ("yz", 49, 49),
        ("yz", 441, 441),
    ],
)
def test_a_loop_whose_ends_are_computed_is_not_straight_line_code(tile: str, steps: int, unrolled: int) -> None:
    task, candidate = convolution(tile, steps)
    sketch = sketch_of(task, candidate)
    row = np.zeros((1, 0), np.int64)
    program = sketch.fold(())
    names = [facts.name for facts in population_facts(program)]
    fast = extract(sketch, row)
    np.testing.assert_allclose(fast, reference(finished(sketch.lower(row[0]), sketch.target), names, sketch.target))
    assert 2.0 ** fast[0, -1, COLUMN["unrolled"]] - 1 == pytest.approx(unrolled)


def test_all_steps_of_what_has_no_padding_run() -> None:
    task = Task(workloads.matmul(8, 8, 8), WIDE)
    (nest,) = sketch_of(task, Candidate("def schedule(s):\n    pass")).fold(()).nests
    assert left_out(nest).needed == 1
