"""Export and import: nothing is lost, nothing is doubled, and what is wrong is named by its line."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite.errors import RecordsError
from ansorlite.records import Database, Measurement, Outcome, Seconds, export_lines, import_lines
from ansorlite.sketch.candidate import Candidate
from tests.unit.records.samples import failure, measurement, task

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SECONDS = st.floats(0, 1e9)
MEASUREMENTS = st.builds(
    Measurement,
    candidate=st.builds(Candidate, TEXT),
    outcome=st.sampled_from(Outcome),
    key=TEXT,
    latency=st.floats(0, 1e9, exclude_min=True),
    checked=st.booleans(),
    error=TEXT,
    seconds=st.builds(Seconds, SECONDS, SECONDS, SECONDS),
    version=TEXT,
    when=SECONDS,
).map(lambda m: m if not m.outcome.failed else replace(m, latency=None))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2), MEASUREMENTS), max_size=4))
def test_a_round_trip_keeps_everything_and_a_second_one_adds_nothing(entries: list[tuple[int, Measurement]]) -> None:
    with tempfile.TemporaryDirectory() as folder, Database(":memory:") as first, Database(":memory:") as second:
        for size, entry in entries:
            first.add(task(size), entry)
        path = Path(folder) / "lines"
        path.write_text("".join(f"{line}\n" for line in export_lines(first)))
        assert import_lines(second, path) == len(first.records())
        assert [(r.task, r.target, r.measurement) for r in second.records()] == [
            (r.task, r.target, r.measurement) for r in first.records()
        ]
        assert second.tasks() == first.tasks()
        assert import_lines(second, path) == 0


@pytest.fixture
def lines() -> list[dict[str, Any]]:
    """A task, a measurement that went well, and one that did not."""
    with Database(":memory:") as database:
        database.add(task(), measurement(1, 2))
        database.add(task(), failure(3, 4, outcome=Outcome.CRASH, error="bang"))
        return [json.loads(line) for line in export_lines(database)]


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("number", "field", "value", "message"),
    [
        (2, "outcome", "exploded", r"line 2: 'outcome' should be one of ok, .* it is \"exploded\""),
        (2, "trace", ["def schedule(s):", "    pass"], "line 2: 'trace' should be a string"),
        (2, "trace", 5, "line 2: 'trace' should be a string; it is 5"),
        (2, "trace", None, "line 2: 'trace' should be a string; it is null"),
        (2, "trace", "\udfff", "line 2: 'trace' should be a string"),
        (2, "latency", -1.0, "line 2: 'latency' should be a number of seconds greater than 0; it is -1.0"),
        (2, "latency", 0, "line 2: 'latency' should be a number of seconds greater than 0; it is 0"),
        (2, "latency", float("inf"), "line 2: 'latency' should be a number of seconds greater than 0; it is Infinity"),
        (2, "latency", 10**400, "line 2: 'latency' should be a number of seconds"),
        (2, "time", 10**400, "line 2: 'time' should be a number of seconds"),
        (2, "error", "\ud800", "line 2: 'error' should be a string"),
        (2, "latency", float("nan"), "line 2: 'latency' should be a number of seconds"),
        (2, "latency", None, "line 2: 'latency' should be a number of seconds"),
        (3, "latency", 1.0, "line 3: 'latency' should be null"),
        (3, "error", None, "line 3: 'error' should be a string; it is null"),
        (3, "checked", 1, "line 3: 'checked' should be true or false"),
        (3, "task", "another", "line 3: the task of this measurement is in no line before it"),
        (3, "kind", "surprise", "line 3: kind is 'surprise'"),
        (3, "schema", 99, "line 3: a newer ansorlite wrote this"),
        (1, "key", "another", "line 1: 'key' does not belong to 'dag'"),
        (1, "dag", 7, "line 1: 'dag' should be an object"),
        (1, "dag", {"format": 1}, "line 1: 'dag' is not a computation"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_added(
    tmp_path: Path, lines: list[dict[str, Any]], number: int, field: str, value: object, message: str
) -> None:
    lines[number - 1][field] = value
    with Database(":memory:") as database:
        with pytest.raises(RecordsError, match=message):
            import_lines(database, write(tmp_path / "lines", lines))
        assert database.records() == []
        assert database.tasks() == []


@pytest.mark.parametrize("field", ["trace", "outcome", "latency", "time", "schema", "kind"])
def test_a_missing_field_is_named(tmp_path: Path, lines: list[dict[str, Any]], field: str) -> None:
    del lines[1][field]
    with Database(":memory:") as database, pytest.raises(RecordsError, match=f"line 2: '{field}' should be .* missing"):
        import_lines(database, write(tmp_path / "lines", lines))


@pytest.mark.parametrize("text", ["{", "[]", "7", "\x00", "[" * 100_000])
def test_a_line_that_is_no_object(tmp_path: Path, lines: list[dict[str, Any]], text: str) -> None:
    path = write(tmp_path / "lines", lines)
    with path.open("a") as file:
        file.write(f"\n{text}\n")
    with Database(":memory:") as database, pytest.raises(RecordsError, match="line 5: this is not"):
        import_lines(database, path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with Database(":memory:") as database:
        with pytest.raises(RecordsError, match="cannot be read"):
            import_lines(database, tmp_path / "nothing")
        with pytest.raises(RecordsError, match="not a text file"):
            import_lines(database, tmp_path / "binary")


def sealed_here(path: Path) -> list[bool]:
    with Database(":memory:") as database:
        import_lines(database, path)
        return [record.measurement.here for record in database.records()]


def test_what_was_measured_here_is_known_again_unless_it_was_changed(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    path = tmp_path / "lines"
    assert sealed_here(write(path, lines)) == [True, True]
    changes = {"latency": 1e-12, "trace": "x", "target": "x", "time": 1.0, "checked": False}
    for field, value in changes.items():
        assert sealed_here(write(path, [lines[0], {**lines[1], field: value}])) == [False], field
    assert sealed_here(write(path, [lines[0], {**lines[1], "seal": lines[2]["seal"]}])) == [False]
    assert sealed_here(write(path, [{k: v for k, v in line.items() if k != "seal"} for line in lines])) == [False, False]


def test_another_machine_s_measurements_are_not_its_own(
    tmp_path: Path, lines: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSORLITE_CACHE_DIR", str(tmp_path / "another"))
    assert sealed_here(write(tmp_path / "lines", lines)) == [False, False]
    with Database(":memory:") as database:
        import_lines(database, tmp_path / "lines")
        assert database.best(task().key, task().target.key) is None
        database.add(task(), measurement(7, latency=1.0))
        assert database.best(task().key, task().target.key) == measurement(7, latency=1.0)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_stands_in_a_line_is_one_sentence(data: st.DataObject) -> None:
    with Database(":memory:") as database:
        database.add(task(), measurement(1, 2))
        good = [json.loads(line) for line in export_lines(database)]
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    anything = st.recursive(plain, lambda x: st.lists(x) | st.dictionaries(TEXT, x), max_leaves=4)
    spoilt, number = json.loads(json.dumps(good)), data.draw(st.integers(0, 1))
    place: Any = spoilt[number]
    while True:  # somewhere inside of the line
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            place[key] = data.draw(anything)
            break
        place = inner
    with tempfile.TemporaryDirectory() as folder, Database(":memory:") as database:
        error = None
        try:
            import_lines(database, write(Path(folder) / "lines", spoilt))
        except RecordsError as raised:
            error = str(raised)
        assert error is None or f"line {number + 1}" in error or "line 2: the task" in error
        assert error is None or database.records() == []


def test_deep_lines_are_one_sentence(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    for depth in (300, 900, 3000, 50_000):
        for field in ("trace", "dag", "error"):
            number = 0 if field == "dag" else 1
            text = json.dumps({**lines[number], field: "@"}).replace('"@"', "[" * depth + "]" * depth)
            (tmp_path / "lines").write_text("\n".join([*(json.dumps(line) for line in lines[:number]), text]))
            with Database(":memory:") as database, pytest.raises(RecordsError, match=f"line {number + 1}"):
                import_lines(database, tmp_path / "lines")
