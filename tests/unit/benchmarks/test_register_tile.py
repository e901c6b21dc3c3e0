"""Register tiles whose best speed is timed."""

from functools import partial

import numpy as np
import pytest

from ansorlite.calibration.loop import HEAD
from ansorlite.calibration.stopwatch import Stopwatch, storage
from ansorlite.target import process_target
from benchmarks.register_tile import alone, step, tiles


@pytest.mark.parametrize(("registers", "known"), [(16, (6, 2)), (16, (4, 2)), (32, (6, 4)), (32, (14, 2)), (32, (8, 3))])
def test_tiles_fill_the_registers(registers: int, known: tuple[int, int]) -> None:
    found = list(tiles(registers))
    assert known in found
    assert all(rows * vectors + vectors < registers for rows, vectors in found)


def test_steps_multiply_every_pair() -> None:
    """A few steps of ones: every lane of every sum goes up by one each."""
    target = process_target()
    watch = Stopwatch(target, {"tile": partial(step, rows=3, vectors=2), "alone": alone}, storage(64 * target.vector_bytes))
    watch.data.view(np.float32)[:] = 1.0
    watch.once("tile", 5)
    half = watch.data.view(np.uint8)[HEAD // 2 : HEAD].view(np.float32)
    assert (half[: 6 * target.lanes("float32")] == 6.0).all()
