"""The loops behind the measured peaks do what they are said to do, so that none of their work can be left out."""

import numpy as np

from ansorlite.runtime.peaks import Loops, aligned
from ansorlite.target import host


def test_a_sweep_reads_or_copies_everything() -> None:
    data = aligned(1 << 14)
    data[:] = np.random.default_rng(0).integers(0, 256, data.size)
    with Loops(host()) as loops:
        before = data.copy()
        loops.reader(data, data.size)(1)
        lanes = before.reshape(-1, host().vector_bytes)
        np.testing.assert_array_equal(loops.sink, np.bitwise_xor.reduce(lanes))
        loops.copier(data, data.size)(1)
    half = data.size // 2
    np.testing.assert_array_equal(data, np.concatenate([before[:half], before[:half]]))


def test_every_chain_multiplies_and_adds() -> None:
    with Loops(host()) as loops:
        loops.sink.view(np.float32)[:] = 0.5
        loops.multiply_adds(1)
        # Every chain begins at a half and adds a quarter a step; the sum of all of them has the start once more.
        expected = 0.5 + loops.chains * (0.5 + 1000 * 0.25)
        np.testing.assert_allclose(loops.sink.view(np.float32), expected)
    assert loops.flops_a_turn == 1000 * loops.chains * 2 * host().lanes("float32")
