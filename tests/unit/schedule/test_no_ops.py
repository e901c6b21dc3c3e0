"""Iterations of a reduction that change nothing do not run, where their loop can be without them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ansorlite.loops.interpreter import interpret
from ansorlite.loops.printer import text
from ansorlite.schedule.no_ops import LEAST_SHARE
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower, sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.task import Task
from tests import workloads
from tests.targets import WIDE


def convolution(size: int, rows: int, stride: int = 1) -> tuple[Task, Candidate]:
    """Tiles of so many rows inside of the loops over taps; all columns are a vector."""
    outputs = (size - 1) // stride + 1
    trace = f"""def schedule(s):
    conv = s.stage("conv")
    y0, y1 = s.split(conv["y"], (None, {rows}))
    s.reorder(conv["b"], conv["o"], y0, conv["rc"], conv["ry"], conv["rx"], y1, conv["z"])
    s.vectorize(conv["z"], lanes=8)
    s.unroll((conv["ry"], conv["rx"], y1, conv["z"]), max_steps=64)
    padded = s.stage("padded")
    s.compute_at(padded, None)"""
    assert outputs % rows == 0
    return Task(workloads.conv2d(1, 2, size, size, 3, stride=stride), WIDE), Candidate(trace)


def conditions(size: int, rows: int, stride: int = 1) -> list[str]:
    return re.findall(r"if (.*) \(else no-op\)", text(lower(*convolution(size, rows, stride))))


def test_a_row_of_outputs_leaves_out_the_taps_above_and_below() -> None:
    assert [re.sub(r"\b([a-z]+)\d+\b", r"\1", each) for each in conditions(7, 1)] == ["7 - y - ry >= 0", "y + ry - 1 >= 0"]


def test_a_tile_leaves_out_what_none_of_it_needs() -> None:
    assert conditions(8, 8) == [], "some row needs every tap"
    assert conditions(8, 2) == [], "so does each of two rows"


def test_a_tile_of_whole_rows_leaves_out_taps_row_by_row() -> None:
    found = [re.sub(r"\b([a-z]+)\d+(_\d+)?\b", r"\1", each) for each in conditions(7, 7)]
    assert found == ["7 - ry - y >= 0", "ry + y - 1 >= 0"]
    assert conditions(8, 8) == [], "more steps than are written out: a loop over its rows would need numbers of registers"


def test_places_between_taps_change_nothing() -> None:
    """A place that a sample may take cuts loops into bands, whichever it takes."""
    task = Task(workloads.conv2d(1, 2, 7, 7, 3), WIDE)
    s = Schedule(task.dag, WIDE)
    conv = s.stage("conv")
    s.reorder(*(conv[name] for name in ("b", "o", "y", "z", "rc", "ry", "rx")))
    s.compute_at("padded", s.sample((None, conv["ry"])))
    sketch = Sketch(s.structure, s.trace, WIDE)
    for choice in range(2):
        function = sketch.lower(np.array([choice]))
        again = sketch_of(task, sketch.candidate(np.array([choice])))
        assert text(function) == text(again.lower(()))
        assert text(function).count("(else no-op)") == 4


def test_a_few_iterations_may_as_well_run() -> None:
    size = round(2 / 3 / LEAST_SHARE)
    assert conditions(size - 10, 1)
    assert conditions(size + 10, 1) == []


@pytest.mark.parametrize(
    ("size", "rows", "stride"), [(7, 1, 1), (7, 7, 1), (9, 3, 1), (9, 5, 2), (9, 1, 2), (1, 1, 1), (2, 1, 1)]
)
def test_what_remains_is_the_convolution(size: int, rows: int, stride: int) -> None:
    task, candidate = convolution(size, rows, stride)
    function = lower(task, candidate)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-4, 5, tensor.shape).astype(np.float32) for tensor in task.dag.inputs]
    outputs = (size - 1) // stride + 1
    data = np.pad(inputs[0], ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    expected = np.einsum("bcyzij,ocij->boyz", windows, inputs[1])
    assert expected.shape == (1, 3, outputs, outputs)
    found = np.zeros(expected.shape, np.float32)
    interpret(function, [*inputs, found])
    np.testing.assert_array_equal(found, expected)
