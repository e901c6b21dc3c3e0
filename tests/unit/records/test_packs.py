"""A pack is what a database knows of a model, in a file that travels and is not believed."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ansorlite as al
from ansorlite.best import Programs
from ansorlite.cache.disk import NoCache
from ansorlite.cli.main import main
from ansorlite.errors import RecordsError
from ansorlite.measure.referee import Referee, Turn
from ansorlite.measure.verdict import Verdict
from ansorlite.records import Database, Measurement, Outcome
from ansorlite.records.packs import Pack, import_file, is_pack, write_pack
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import Candidate
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from tests.unit.records.samples import measurement, task
from tests.workloads import matmul

TASK = Task(matmul(16, 16, 16))
SKETCHES = derive(TASK)
DEFAULT = default_candidate(TASK, SKETCHES)
OTHER = SKETCHES[0].candidate((0,) * len(SKETCHES[0].holes))


def packed(path: Path, *measurements: Measurement, of: Task = TASK, name: str = "one") -> Path:
    with Database(path / f"{name}.db") as database:
        for each in measurements:
            database.add(of, each)
        write_pack([database], [of], path / f"{name}.pack", "a model")
    return path / f"{name}.pack"


def ran(candidate: Candidate, latency: float, when: float = 0.0) -> Measurement:
    return Measurement(candidate, Outcome.OK, latency=latency, checked=True, when=when)


def elsewhere(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be another machine, whose seals are others."""
    monkeypatch.setenv("ANSORLITE_CACHE_DIR", str(tmp_path / "another"))
    return pack


class FakeReferee(Referee):
    """Says that the program is so many times as slow as its rival."""

    def __init__(self, ratio: float) -> None:
        super().__init__()
        self.ratio = ratio
        self.turns = 0
        self.seconds = 0.0

    def compare(self, task: Task, program: bytes, rival: bytes, seconds: float) -> Turn:  # noqa: ARG002
        self.turns += 1
        self.seconds += seconds
        return Turn(Verdict(Outcome.OK), self.ratio * 1e-3, 1e-3, seconds)


def test_a_pack_is_a_few_lines_that_people_can_read(tmp_path: Path) -> None:
    best = [measurement(n, latency=1.0 + n) for n in range(9)]
    path = packed(tmp_path, *best, of=task())
    head, *lines = map(json.loads, path.read_text().splitlines())
    assert (head["kind"], head["schema"], head["name"], head["version"]) == ("pack", 1, "a model", al.__version__)
    assert [line["kind"] for line in lines] == ["task", *["measurement"] * 3]
    assert [line["latency"] for line in lines[1:]] == [1.0, 2.0, 3.0]
    assert is_pack(path)


def test_on_the_machine_that_tuned_a_pack_gives_what_tuning_gave(tmp_path: Path) -> None:
    path = packed(tmp_path, ran(DEFAULT, 2.0), ran(OTHER, 1.0))
    referee = FakeReferee(0.1)
    with Pack(path) as pack:
        assert Programs(pack, referee=referee).candidate(TASK) == OTHER
    assert referee.turns == 0


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, OTHER), (2.0, DEFAULT)])
def test_elsewhere_each_program_has_to_win_its_turn_which_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ratio: float, expected: Candidate
) -> None:
    path = elsewhere(packed(tmp_path, ran(OTHER, 1.0)), tmp_path, monkeypatch)
    first, again = FakeReferee(ratio), FakeReferee(ratio)
    with Pack(path) as pack, caplog.at_level(logging.INFO):
        programs = Programs(pack, referee=first)
        assert programs.candidate(TASK) == expected
        programs.kernel(TASK)
        programs.warn()
        assert (f"1 recommended by {path}, which won a turn here" in caplog.text) == (expected == OTHER)
    with Pack(path) as pack:
        assert Programs(pack, referee=again).candidate(TASK) == expected
    assert (first.turns, again.turns) == (1, 0)


def test_programs_of_another_target_are_tried_where_there_are_none_of_this_one(tmp_path: Path) -> None:
    other = Task(matmul(16, 16, 16), replace(TASK.target, cpu="another"))
    path = packed(tmp_path, ran(OTHER, 1.0), of=other)
    won, lost = FakeReferee(0.5), FakeReferee(2.0)
    with Pack(path) as pack:
        assert Programs(pack, cache=NoCache(), referee=won).candidate(TASK) == OTHER
        assert Programs(pack, cache=NoCache(), referee=lost).candidate(TASK) == DEFAULT
    assert (won.turns, lost.turns) == (1, 1)


@pytest.mark.parametrize("where", ["cache", "database"])
def test_a_pack_of_another_target_costs_half_a_second_a_task_once_and_never_makes_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("ANSORLITE_CACHE_DIR", str(tmp_path / "cache"))
    other = Task(matmul(16, 16, 16), replace(TASK.target, cpu="another"))
    rows = np.random.default_rng(0).integers(0, 2, (3, len(SKETCHES[0].holes)))
    few = [SKETCHES[0].candidate(tuple(map(int, row))) for row in rows]
    path = packed(tmp_path, *(ran(each, 1.0 + n) for n, each in enumerate(few)), of=other)
    databases = [Pack(path)] if where == "cache" else [Database(tmp_path / "own.db"), Pack(path)]
    first, again = FakeReferee(1.5), FakeReferee(1.5)
    for referee in (first, again):
        assert Programs(databases, referee=referee).candidate(TASK) == DEFAULT
    assert first.turns > 0
    assert first.seconds <= 0.5
    assert again.turns == 0, "it is kept"
    for database in databases:
        database.close()


def test_a_pack_of_another_target_is_right_and_no_slower_than_the_default(tmp_path: Path) -> None:
    """Really timed: what is taken won its turn."""
    other = Task(matmul(16, 16, 16), replace(TASK.target, cpu="another"))
    path = packed(tmp_path, ran(OTHER, 1e-9), of=other)
    kernel = al.compile(TASK, [tmp_path / "own.db", path])
    a, b = (np.random.default_rng(0).random((16, 16), dtype=np.float32) for _ in range(2))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5)
    with Pack(path) as pack, Programs(pack) as programs:
        chosen = programs.candidate(TASK)
        assert chosen in (DEFAULT, OTHER)
        kept = {m.candidate: m.latency for m in programs._measured(TASK) if m.here}
        assert kept[chosen] == min(latency for latency in kept.values() if latency is not None)


def test_only_the_model_is_packed(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as first, Database(tmp_path / "b.db") as second:
        first.add(TASK, ran(OTHER, 1.0))
        first.add(Task(matmul(8, 8, 8)), ran(Candidate("def schedule(s): pass"), 1.0))
        second.add(TASK, ran(DEFAULT, 2.0))
        assert write_pack([first, second], [TASK, TASK], tmp_path / "p", "it") == {TASK.target.key: 1}
    with Pack(tmp_path / "p") as pack:
        assert [entry.key for entry in pack.tasks()] == [TASK.key]
        assert [record.measurement.candidate for record in pack.records()] == [OTHER, DEFAULT]


def test_several_packs_and_a_database_at_once(tmp_path: Path) -> None:
    second = Task(matmul(8, 8, 8))
    own = derive(second)[0]
    mine = own.candidate((0,) * len(own.holes))
    paths = [packed(tmp_path, ran(OTHER, 1.0)), packed(tmp_path, ran(mine, 1.0), of=second, name="two")]
    for order in (paths, paths[::-1], [tmp_path / "one.db", paths[1]]):
        assert al.compile(TASK, order).trace == OTHER.trace
        assert al.compile(second, order).trace == mine.trace


def test_what_a_pack_names_computes_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rubbish = Candidate("def schedule(s): rubbish")
    path = elsewhere(packed(tmp_path, ran(OTHER, 1.0), ran(rubbish, 0.5)), tmp_path, monkeypatch)
    a, b = (np.random.default_rng(0).random((16, 16), dtype=np.float32) for _ in range(2))
    np.testing.assert_allclose(al.compile(TASK, path)(a, b), a @ b, rtol=1e-5)


def test_a_pack_is_imported_like_records(tmp_path: Path) -> None:
    path = packed(tmp_path, ran(DEFAULT, 2.0), ran(OTHER, 1.0))
    with Database(tmp_path / "new.db") as database:
        assert import_file(database, path) == 2
        assert import_file(database, path) == 0
        found = database.best(TASK.key, TASK.target.key)
        assert found is not None
        assert found.candidate == OTHER


def test_tuning_does_not_write_to_a_pack(tmp_path: Path) -> None:
    path = packed(tmp_path, ran(OTHER, 1.0))
    with pytest.raises(RecordsError, match=r"is a pack, which is only read; .*records tuning.db --import"):
        al.tune(TASK, trials=1, database=path)


def test_there_must_be_something_to_pack(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database, pytest.raises(RecordsError, match="has no program of it that ran and was right"):
        write_pack([database], [TASK], tmp_path / "a.pack", "it")


def changed(content: bytes, **fields: object) -> bytes:
    head, _, body = content.partition(b"\n")
    return json.dumps({**json.loads(head), **fields}).encode() + b"\n" + body


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda content: content[:-20], "damaged, cut off, or changed"),
        (lambda content: content.replace(b"1.0", b"0.1"), "damaged, cut off, or changed"),
        (lambda content: changed(content, schema=2), r"newer ansorlite \(schema 2, not 1\)"),
        (lambda content: changed(content, digest=3), "damaged, cut off, or changed"),
        (lambda content: changed(content, kind="Pack"), "is no pack"),
        (lambda content: b'{"kind": "pack"' + b"[" * 100_000 + content, "is no pack"),
        (lambda content: b'{"kind": "pack"' + b"[" * 10_000 + b"\n" + content, "is no pack"),
        (lambda _: b"", "is no pack"),
        (lambda _: b'{"kind": "pack"\xff\xff\n', "is no pack"),
    ],
)
def test_a_bad_pack_is_one_sentence(tmp_path: Path, damage: object, expected: str) -> None:
    path = packed(tmp_path, ran(OTHER, 1.0))
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(RecordsError, match=expected):
        Pack(path)


def test_a_pack_whose_lines_are_wrong_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.pack"
    body = b'{"kind": "task", "schema": 2}\n'
    digest = hashlib.sha256(body).hexdigest()
    path.write_bytes(json.dumps({"kind": "pack", "schema": 1, "digest": digest}).encode() + b"\n" + body)
    with pytest.raises(RecordsError, match="line 2: 'key' should be a string; it is missing"):
        Pack(path)


def test_a_pack_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        al.compile(TASK, [tmp_path / "nowhere.pack"])
    assert "there is no tuning database at" in caplog.text


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from tests import workloads\n\n\ndef product(n):\n    return workloads.matmul(n, n, n)\n")
    with Database(tmp_path / "t.db") as database:
        database.add(TASK, ran(OTHER, 1.0))
    words = ["pack", str(tmp_path / "t.db"), f"{tmp_path / 'own.py'}:product", "--args", "16", "-o", str(tmp_path / "p.pack")]
    done = CliRunner().invoke(main, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["targets"] == {TASK.target.key: 1}
    with Pack(tmp_path / "p.pack") as pack:
        assert [record.measurement.candidate for record in pack.records()] == [OTHER]
