"""The tables in the repository, and presets on three of them."""

from pathlib import Path

import numpy as np
import pytest

from ansorlite.tuner.presets import PRESETS
from benchmarks.search import metrics
from benchmarks.search.__main__ import TABLES
from benchmarks.search.describing import described
from benchmarks.search.judge import Bench
from benchmarks.search.results import Judged
from benchmarks.search.table import Kind, read

PATHS = sorted(path for path in TABLES.glob("*/*.npz") if ".features" not in path.name)
#: Of which the whole takes seconds.
SMALL = ("grid/odd_matmul_17x1009x331", "foreign/conv_milo_MI50", "foreign/pnpoly_Titan")
SEEDS = range(5)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_table_is_whole(path: Path) -> None:
    table = read(path, features=True)
    assert table.meta.kind.value == path.parent.name
    assert (table.features is None) == (table.meta.kind is Kind.FOREIGN)
    assert (table.meta.kind is Kind.FOREIGN) == bool(table.meta.licence)
    if table.meta.kind is not Kind.FOREIGN:
        assert len(table.traces) == len(table)


def test_features_are_those_of_today() -> None:
    """Of one table; whatever changes the features of another one changes these, too, or is rare."""
    table = read(TABLES / f"{SMALL[0]}.npz", features=True)
    again = described(table)
    assert again.meta == table.meta, "run `python -m benchmarks.search describe`"
    np.testing.assert_array_equal(again.features, table.features, "run `python -m benchmarks.search describe`")


def test_they_are_below_ten_megabytes() -> None:
    assert sum(path.stat().st_size for path in TABLES.glob("*/*.npz")) < 10_000_000


def scores(name: str, preset: str, trials: int = 48) -> list[float]:
    """Of five seeds, how much closer to the best than random search is expected to be."""
    table = read(TABLES / f"{name}.npz", features=True)
    bench, random = Bench.of(table), metrics.expected_best(metrics.programs(table), trials)
    found = []
    for seed in SEEDS:
        run = Judged.of(preset, name, seed, trials, "", bench.run(PRESETS[preset], trials, seed))
        found.append(metrics.score(metrics.best_so_far(run.bests, trials, metrics.slowest(table)), random, table.best, trials))
    return found


def test_the_default_is_better_than_random_search_is_expected_to_be() -> None:
    found = {name: float(np.median(scores(name, "default"))) for name in SMALL}
    assert np.median(list(found.values())) > 0.1, found
    assert min(found.values()) > -0.3, found


def test_random_search_is_about_as_good_as_it_is_expected_to_be() -> None:
    found = [score for name in SMALL for score in scores(name, "random")]
    assert abs(np.mean(found)) < 0.35, found
