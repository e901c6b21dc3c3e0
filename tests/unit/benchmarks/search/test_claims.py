"""Claims are met, missed, or open, by what runs say; tables that commands keep for the page."""

from pathlib import Path

import pytest

from ansorlite.errors import ArgumentError
from ansorlite.tuner.presets import DEFAULT, PRESETS
from benchmarks.common.tables import Table as Grid
from benchmarks.search.claims import CLAIMS, ENOUGH, NEURAL_ENOUGH, NEURAL_TABLES, RANDOM, claims
from benchmarks.search.kept import keep, kept
from benchmarks.search.results import Judged, is_neural
from benchmarks.search.standing import Found, OnTable
from benchmarks.search.table import Kind, Table
from benchmarks.search.variants import BEFORE
from tests.unit.benchmarks.search.support import small_table

HERON = next(claim for claim in CLAIMS if claim.ours.preset == "heron")


def runs(table: Table, preset: str, seconds: float, seeds: int = ENOUGH, trials: int = 64) -> OnTable:
    made = tuple(Judged(preset, "t", seed, trials, "", trials, ((1, 9e-4), (20, seconds * 1e-4)), 0.1) for seed in range(seeds))
    return OnTable(table, made, trials)


def verdict(ours: float, theirs: float, seeds: int = ENOUGH, tables: int = 2) -> tuple[str, ...]:
    table = small_table()
    names = [f"t{number}" for number in range(2)]
    found: Found = {}
    for name in names[:tables]:
        found = {
            **found,
            ("heron", name): runs(table, "heron", ours, seeds),
            ("autotvm-ga", name): runs(table, "autotvm-ga", theirs, seeds),
        }
    made = claims(dict.fromkeys(names, table), {64: found})
    return next(row for row in made.rows if row[0] == HERON.text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((1.0, 2.0), ("2 of 2", "0", "met")),
        ((2.0, 1.0), ("0 of 2", "2", "missed")),
        ((1.0, 1.0), ("0 of 2", "0", "missed")),
        ((1.0, 2.0, ENOUGH - 1), ("2 of 2", "0", "open: fewer than 10 seeds")),
        ((1.0, 2.0, ENOUGH, 1), ("1 of 1", "0", "open: 1 of 2 tables")),
    ],
)
def test_a_claim(given: tuple[float, ...], said: tuple[str, ...]) -> None:
    assert verdict(*given)[1:] == said  # type: ignore[arg-type]


def test_a_claim_of_more_trials_needs_such_runs() -> None:
    table = small_table(kind=Kind.FOREIGN)
    pair = {(name, "t"): runs(table, name, seconds, trials=128) for name, seconds in (("autotvm-ga", 1.0), ("random", 2.0))}
    rows = claims({"t": table}, {128: pair}).rows
    assert {row[-1] for row in rows[:-1]} >= {"open: no runs"}
    texts = [row[0] for row in rows if row[-1] != "open: no runs"]
    assert texts == ["AutoTVM's genetic algorithm beats random search at 128 on 12 of 20 tables"]


def test_a_rival_of_the_default_is_counted() -> None:
    table = small_table()
    found = {(name, "t"): runs(table, name, seconds) for name, seconds in (("local", 1.0), ("default", 2.0))}
    *others, row = claims({"t": table}, {64: found}).rows
    assert {other[-1] for other in others} == {"open: no runs"}
    assert row == ("local beats the default on no more than 4 of 20 tables", "1 of 1", "", "missed")


@pytest.mark.parametrize(
    ("seeds", "tables", "verdict"),
    [
        (NEURAL_ENOUGH, NEURAL_TABLES, "met"),
        (NEURAL_ENOUGH - 1, NEURAL_TABLES, "open: fewer than 5 seeds"),
        (NEURAL_ENOUGH, NEURAL_TABLES - 1, "open: 5 of 6 tables"),
    ],
)
def test_neural_presets_need_fewer_seeds_on_some_tables(seeds: int, tables: int, verdict: str) -> None:
    table = small_table()
    names = [f"t{number}" for number in range(tables)]
    found = {("tlp", name): runs(table, "tlp", 2.0, seeds) for name in names}
    found |= {("default", name): runs(table, "default", 1.0) for name in names}
    row = claims(dict.fromkeys(names, table), {64: found}).rows[-1]
    assert row == ("tlp beats the default on no more than 4 of 20 tables", f"0 of {tables}", "", verdict)


def test_networks_are_found_in_models_and_strategies() -> None:
    neural = {name for name, preset in PRESETS.items() if is_neural(preset)}
    assert {"tenset", "tlp", "mtl-tlp", "tiramisu", "one-shot", "felix", "value"} <= neural
    assert not neural & {DEFAULT, "random", "ansor", "autotvm", "bayesian"}


def test_tables_are_kept_by_title(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    assert kept(path) == {}
    for title, value in (("a", "1"), ("b", "2"), ("a", "3")):
        keep(path, title, Grid(title, ("x", "y"), (("row", value),), ("a note",)))
    assert {title: each.rows for title, each in kept(path).items()} == {"a": (("row", "3"),), "b": (("row", "2"),)}
    path.write_text('{"a": 3}')
    with pytest.raises(ArgumentError, match="delete it, and make them again"):
        kept(path)


@pytest.mark.parametrize(("random", "count"), [(1.0, 1), (3.0, 0)])
def test_what_another_preset_would_have_reached_is_told(random: float, count: int) -> None:
    table = small_table(kind=Kind.FOREIGN)
    found = {(name, "t"): runs(table, name, seconds) for name, seconds in ((DEFAULT, 3.0), (BEFORE, 2.0), (RANDOM, random))}
    made = claims({"t": table}, {64: found})
    (told,) = (note for note in made.notes if note.endswith("foreign tables."))
    assert f"before on {count} of 1 foreign" in told
    assert next(row for row in made.rows if "6 of 8 foreign" in row[0])[1] == "0 of 1"
