"""Operands that are read across the rows of memory: a copy of the tile is offered, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorlite import te
from ansorlite.loops.interpreter import interpret
from ansorlite.schedule.primitives import CacheRead
from ansorlite.sketch.sketch import Sketch
from ansorlite.spaces import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE

TARGET = replace(WIDE, vector_bytes=32, vector_registers=16)


def copied(tensors: list[te.Tensor], target: Target = TARGET) -> list[tuple[str, ...]]:
    """The tensors that each sketch copies."""
    sketches = derive(Task(tensors, target))
    return [tuple(step.tensor for step in sketch.trace.steps if isinstance(step, CacheRead)) for sketch in sketches]


def test_the_transposed_operand_alone_is_copied() -> None:
    assert copied(workloads.transpose_add(64, 48)) == [("B",), ()]


def test_every_transposed_operand_is_copied() -> None:
    x, y = (te.placeholder((40, 24), name=name) for name in "XY")
    both = te.compute((24, 40), lambda i, j: x[j, i] * y[j, i], name="Z")
    assert copied([x, y, both]) == [("X", "Y"), ()]


def test_what_lies_in_order_is_not_copied() -> None:
    x, scale = te.placeholder((40, 24), name="X"), te.placeholder((40,), name="scale")
    assert copied([x, scale, te.compute((40, 24), lambda i, j: x[i, j] * scale[i], name="Z")]) == [()]


def test_what_is_read_twice_or_in_strides_is_not_copied() -> None:
    x = te.placeholder((24, 24), name="X")
    assert copied([x, te.compute((24, 24), lambda i, j: x[i, j] + x[j, i], name="Z")]) == [()]
    assert copied([x, te.compute((24, 12), lambda i, j: x[i, 2 * j], name="Z")]) == [()]


def test_tiles_are_transposed_and_right() -> None:
    task = Task(workloads.transpose_add(24, 40), TARGET)
    sketch = derive(task)[0]
    inputs = arrays_for(task.dag, np.random.default_rng(0))
    expected = evaluate(task.dag, inputs)
    transposed = 0
    for row in _rows(sketch):
        transposed += bool(sketch.fold(row).nests[0].packed[0].transposed)
        out = np.zeros_like(expected[0])
        interpret(sketch.lower(row), [*inputs, out])
        assert_close(task.dag, [out], expected)
    assert transposed > 0


def _rows(sketch: Sketch) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(1)
    return [tuple(int(rng.integers(hole.size)) for hole in sketch.holes) for _ in range(12)]
