"""A database goes on meaning the same programs, whatever becomes of the rules, the tables and the defaults."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ansorlite as al
from ansorlite.evolution import EvolutionSettings
from ansorlite.loops.nodes import For, Function, LoopKind, index
from ansorlite.loops.passes import LoopPass
from ansorlite.loops.printer import module_text, text
from ansorlite.measure import native
from ansorlite.measure.replay import main as replay
from ansorlite.platforms import finished
from ansorlite.platforms.table import PLATFORMS, platform_of
from ansorlite.records import Database
from ansorlite.schedule import tiles
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.sketch.program import lower
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.sketch.rules.fusion import MULTI_LEVEL_TILING_WITH_FUSION
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.expr import Var
from tests import workloads
from tests.unit.records.samples import measurement


def test_a_changed_rule_table_and_default_change_no_program_of_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(workloads.matmul_relu(48, 96, 40))
    before, rng = derive(task), np.random.default_rng(5)
    recorded = [each.candidate(TileSpace(each).sample(1, rng)[0]) for each in before]
    for number, candidate in enumerate(recorded):
        with Database(tmp_path / f"{number}.db") as database:
            database.add(task, replace(measurement(number), candidate=candidate, version=al.__version__))

    def compiled() -> list[tuple[str, str]]:
        """The loops of each database's best program; also made anew, as a kernel may come from the cache."""
        kernels = [al.compile(task, database=tmp_path / f"{number}.db") for number in range(len(recorded))]
        return [(kernel.source("loops"), text(lower(task, Candidate(kernel.trace)))) for kernel in kernels]

    programs = compiled()
    assert len(set(programs)) == len(recorded) > 1
    rules = tuple(rule for rule in CPU_RULES if rule is not MULTI_LEVEL_TILING_WITH_FUSION)
    changed = {key: replace(platform, rules=rules) for key, platform in PLATFORMS.items()}
    monkeypatch.setattr("ansorlite.platforms.table.PLATFORMS", changed)
    monkeypatch.setattr(tiles, "MAX_ROWS", 3)
    monkeypatch.setattr(tiles, "MAX_WASTE", 0.0)
    monkeypatch.setattr("ansorlite.search.default._FIRST", EvolutionSettings(population=16, generations=1, keep=4))
    monkeypatch.setattr("ansorlite.search.default._THEN", EvolutionSettings(population=16, generations=1, keep=1))
    tiles.tile_table.cache_clear()
    try:
        after = derive(task)
        assert not {each.signature for each in after} & {each.signature for each in before}
        assert all(each.row_of(candidate) is None for each in after for candidate in recorded)
        assert compiled() == programs
    finally:
        tiles.tile_table.cache_clear()


def test_a_record_is_known_by_the_loops_of_its_program(tmp_path: Path) -> None:
    """Whatever space it came from: two of them that have one program make records of one key."""
    task = al.Task(workloads.matmul_relu(8, 8, 8))

    def split(s: al.Schedule) -> None:
        s.split(s.stage("D")["i"], [None, s.sample((2, 4), name="x")])

    def the_same(s: al.Schedule) -> None:
        s.split(s.stage("D")["i"], s.sample_tile(s.stage("D")["i"], 2, innermost=(2, 4), name="y"))

    found = []
    for number, space in enumerate((split, the_same)):
        al.tune(task, space=space, trials=5, database=tmp_path / f"{number}.db", progress=False)
        with Database(tmp_path / f"{number}.db") as database:
            measured = [record.measurement for record in database.records_of(task)]
        for each in measured:
            function = replace(lower(task, each.candidate), name="kernel")
            printed = module_text(finished(function, task.target)).encode()
            assert each.key == hashlib.sha256(printed).hexdigest()[: len(each.key)]
            assert each.peak > 1e8, "of this machine, when it measured"
        found.append({each.key for each in measured})
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_a_changed_pass_changes_the_key_and_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = al.Task(workloads.matmul_relu(8, 8, 8))
    platform, before = platform_of(task.target), native.build(task, NAIVE)
    with Database(tmp_path / "db") as database:
        database.add(task, replace(measurement(0), candidate=NAIVE, key=before.key, version="1.2.3"))
    words = [str(tmp_path / "db"), "1", "--here"]
    noticed = "its key is not of these loops: version 1.2.3 may have measured other ones"
    assert noticed not in CliRunner().invoke(replay, words).stdout

    def nothing(function: Function, _: Target) -> Function:
        return function

    def around(function: Function, _: Target) -> Function:
        return replace(function, body=For(Var("once"), index(1), LoopKind.SERIAL, function.body))

    for change, changes in ((nothing, False), (around, True)):
        passes = (*platform.passes, LoopPass("changed", change))
        monkeypatch.setitem(PLATFORMS, task.target.platform, replace(platform, passes=passes))  # type: ignore[arg-type]
        after = native.build(task, NAIVE)
        assert (after.key != before.key) == changes
        shown = CliRunner().invoke(replay, words).stdout
        assert "now:       ok, " in shown
        assert (noticed in shown) == changes
