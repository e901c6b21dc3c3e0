"""Stopping when turns are steady, on the raw repeats that a table of others has."""

import numpy as np

from ansorlite.measure.timing import steady
from benchmarks.search.__main__ import TABLES
from benchmarks.search.table import read

#: AdaTune's share of all turns in a batch.
BATCHES = 10


def test_steady_turns_tell_the_better_of_two_with_half_of_the_runs() -> None:
    """What AdaTune's card asks: of pairs 5 % apart or more, the same is better in 95 %, with at most half of the runs."""
    table = read(TABLES / "foreign" / "conv_milo_MI50.npz")
    passes = table.passes[np.isfinite(table.passes).all(axis=1)].astype(np.float64)
    assert passes.shape[1] == 32
    rng = np.random.default_rng(0)
    batches = np.stack([part.mean(axis=1) for part in np.array_split(passes, BATCHES, axis=1)], axis=1)
    whole = passes.mean(axis=1)
    early, used = np.empty(len(passes)), np.empty(len(passes))
    for row, each in enumerate(batches):
        count = next((n for n in range(1, BATCHES) if steady(each[:n].tolist())), BATCHES)
        early[row], used[row] = each[:count].mean(), count / BATCHES
    a, b = rng.integers(len(passes), size=(2, 20_000))
    apart = np.abs(np.log(whole[a] / whole[b])) >= np.log(1.05)
    same = (early[a] < early[b]) == (whole[a] < whole[b])
    assert same[apart].mean() >= 0.95
    assert used.mean() <= 0.5
    print(f"same {same[apart].mean():.3f}, runs {used.mean():.2f}")
