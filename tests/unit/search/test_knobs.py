"""Named knobs, and a callable that measures them."""

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansorlite.api.searcher import Chosen, ModelSearcher, SearchOption, apply, bucket
from ansorlite.errors import ArgumentError, RecordsError
from ansorlite.search import STRATEGIES
from ansorlite.search.knobs import KnobSettings, KnobSpace, Setting
from ansorlite.sketch.candidate import Candidate

RANGES: dict[str, Any] = {"m": [1, 2, 4, 8, 16], "n": [1, 2, 4, 8], "layout": ["row", "column"]}
CONSTRAINTS = (lambda m, n: m * n <= 16, lambda n, layout: n > 1 or layout == "row")


def legal() -> set[tuple[Any, ...]]:
    every = itertools.product(*RANGES.values())
    return {(m, n, layout) for m, n, layout in every if m * n <= 16 and (n > 1 or layout == "row")}


def seconds(setting: Setting, size: int) -> float | None:
    m, n = int(setting["m"]), int(setting["n"])
    return None if m == 16 else (abs(m - size // 32 - 1) + abs(n - 4) + (setting["layout"] == "row") + 1) * 1e-3


def test_the_legal_settings_are_there_exactly_once() -> None:
    space = KnobSpace(RANGES, CONSTRAINTS)
    rows = np.indices(space.sizes).reshape(3, -1).T
    found = Counter(tuple(space.setting(row).values()) for row in rows[space.valid(rows)].tolist())
    assert found == Counter(legal())
    assert len(space) == len(found)
    assert set(map(tuple, space.sample(500, np.random.default_rng(0)).tolist())) == set(
        map(tuple, rows[space.valid(rows)].tolist())
    )


def test_the_grid_measures_every_legal_setting_once_and_finds_the_best() -> None:
    measured: list[tuple[Any, ...]] = []

    def measure(setting: Setting, size: int) -> float | None:
        measured.append(tuple(setting.values()))
        return seconds(setting, size)

    chosen = ModelSearcher(measure, RANGES, CONSTRAINTS, option=SearchOption(1000, repeat=1)).search()
    assert Counter(measured) == Counter(legal())
    assert chosen.at(1) == {"m": 1, "n": 4, "layout": "column"}


@pytest.mark.parametrize("strategy", ["annealing", "genetic", "lfbo", "evolutionary", "descent"])
def test_any_strategy_searches_them(strategy: str) -> None:
    assert strategy in STRATEGIES
    option = SearchOption(20, repeat=1, strategy=strategy)
    chosen = ModelSearcher(seconds, RANGES, CONSTRAINTS, option=option).search()
    assert (seconds(chosen.at(1), 1) or 1.0) <= 3e-3


def test_buckets_have_neither_gaps_nor_overlaps() -> None:
    edges = [bucket(size) for size in range(6000)]
    assert all(low <= size < high for size, (low, high) in enumerate(edges))
    distinct = sorted(set(edges))
    assert distinct[0][0] == 0
    assert all(high == low for (_, high), (low, _) in itertools.pairwise(distinct))
    assert {high - low for low, high in distinct if high <= 128} == {32}


def test_each_bucket_has_a_setting_that_a_file_keeps(tmp_path: Path) -> None:
    sizes = {1: 1.0, 8: 2.0, 100: 1.0, 300: 1.0}
    chosen = ModelSearcher(seconds, RANGES, CONSTRAINTS, sizes, SearchOption(1000)).search()
    assert [chosen.at(size)["m"] for size in (1, 100, 120)] == [1, 4, 4]
    assert chosen.at(40) == chosen.at(100)  # the next larger one that was searched
    assert chosen.at(9999) == chosen.at(300)
    chosen.save(tmp_path / "record.json")
    assert apply(tmp_path / "record.json") == chosen


@pytest.mark.parametrize(
    ("ranges", "constraints", "told"),
    [
        ({"m": []}, (), "knob 'm' has the values"),
        ({"m": [1, 1]}, (), "each once"),
        ({"m": [1, 2]}, (lambda m: m > 2,), "the constraints leave no setting"),
        ({"m": [1, 2]}, (lambda k: k > 2,), r"names \['k'\]; its parameters must be among: m"),
        ({"m": range(2000), "n": range(2000)}, (), "more than 1,000,000 legal settings"),
    ],
)
def test_ranges_that_leave_nothing_are_told_in_a_sentence(ranges: Any, constraints: Any, told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        KnobSpace(ranges, constraints)


@pytest.mark.parametrize("given", ["fast", True, -1.0, float("nan")])
def test_a_measurement_that_is_none_is_told_in_a_sentence(given: Any) -> None:
    with pytest.raises(ArgumentError, match="it must give seconds, or None"):
        ModelSearcher(lambda *_: given, RANGES, CONSTRAINTS).search()
    with pytest.raises(ArgumentError, match=re.escape("no setting runs for sizes from 0 to below 32")):
        ModelSearcher(lambda *_: None, RANGES, CONSTRAINTS).search()


@pytest.mark.parametrize("text", ["", "[]", "3", '[{"from": 0}]', '[{"from": 0, "below": 32, "setting": [1]}]', "[" * 100_000])
def test_a_file_of_something_else_is_told_in_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(RecordsError, match=r"holds no settings; give a file that Chosen\.save wrote"):
        apply(tmp_path / "record.json")
    with pytest.raises(RecordsError, match="cannot be read"):
        apply(tmp_path / "nothing.json")


def test_a_candidate_is_a_setting_and_nothing_else_is() -> None:
    settings = KnobSettings(KnobSpace(RANGES, CONSTRAINTS))
    row = (2, 2, 1)
    assert settings.row_of(settings.candidate(row)) == row
    for text in ("x", "3", '{"m": 16, "n": 8, "layout": "row"}', '{"m": 4}', '{"m": true, "n": 4, "layout": "row"}'):
        assert settings.row_of(Candidate(text)) is None
    assert Chosen({(0, 32): {"m": 1}}).at(5) == {"m": 1}
