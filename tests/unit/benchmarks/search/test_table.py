"""Tables: what is written is read again, and what is damaged is one sentence; nothing is unpickled."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.search.table import Kind, TableError, features_path, read, write
from tests.unit.benchmarks.search.support import small_table


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    table, path = small_table(failed=3), tmp_path / "t.npz"
    write(table, path)
    found = read(path, features=True)
    assert found.meta == table.meta
    assert found.traces == table.traces
    for name in ("sketch", "row", "key", "seconds", "outcome", "passes", "build", "run", "knobs", "draft", "features"):
        np.testing.assert_array_equal(getattr(found, name), getattr(table, name))
    assert found.noise == pytest.approx(np.log(1.02), rel=1e-3)
    assert read(path).features is None


class Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("unpickled"),)


@pytest.mark.parametrize("column", ["meta", "traces", "row", "seconds", "key", "outcome", "passes", "knobs", "draft", "build"])
@pytest.mark.parametrize("how", ["missing", "short", "dtype", "pickled", "dimensions"])
def test_a_damaged_column_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, how: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.npz"
    write(small_table(), path)
    arrays = dict(np.load(path, allow_pickle=False))
    if how == "missing":
        del arrays[column]
    elif how == "short":
        arrays[column] = arrays[column].reshape(-1)[:1] if column == "meta" else arrays[column][:-3]
    elif how == "dtype":
        arrays[column] = arrays[column].astype(str) if column != "meta" else np.array(7)
    elif how == "dimensions":
        arrays[column] = arrays[column][..., None, None]
    else:
        arrays[column] = np.array([Evil()] * arrays["seconds"].size, dtype=object)
    np.savez(path, **arrays)
    with pytest.raises(TableError, match=r"^the table .* cannot be used: .*; record or import it again$") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "unpickled").exists()


def test_what_is_no_table_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.npz"
    with pytest.raises(TableError, match="there is no table"):
        read(path)
    whole = tmp_path / "whole.npz"
    write(small_table(), whole)
    bits = whole.read_bytes()
    rng = np.random.default_rng(0)
    flipped = bytearray(bits)
    for place in rng.integers(len(bits), size=200):
        flipped[place] ^= 0xFF
    for content in (b"", b"no table", bits[: len(bits) // 2], pickle.dumps(Evil()), bytes(flipped)):
        path.write_bytes(content)
        with pytest.raises(TableError, match="cannot be used"):
            read(path)
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "it is of format 2, and this version reads 1"),
        ({"sketches": []}, "its column 'sketch' names sketches that it does not have"),
        ({"kind": "cloudy"}, "its 'meta' lacks something or has too much"),
        ({"more": 1}, "its 'meta' lacks something or has too much"),
    ],
)
def test_meta_of_another_format_is_one_sentence(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "t.npz"
    write(small_table(), path)
    arrays = dict(np.load(path, allow_pickle=False))
    arrays["meta"] = np.array(json.dumps({**json.loads(str(arrays["meta"])), **change}))
    np.savez(path, **arrays)
    with pytest.raises(TableError, match=says):
        read(path)


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("row", 99, "has values that sketch 0 has not"),
        ("row", -1, "does not fit the holes"),
        ("sketch", 3, "names sketches"),
        ("outcome", 99, "outcomes that there are not"),
        ("seconds", np.nan, "times that cannot be"),
        ("seconds", -1.0, "times that cannot be"),
        ("seconds", np.inf, "times that cannot be"),
    ],
)
def test_numbers_that_cannot_be_are_one_sentence(tmp_path: Path, column: str, value: float, says: str) -> None:
    path = tmp_path / "t.npz"
    write(small_table(), path)
    arrays = dict(np.load(path, allow_pickle=False))
    arrays[column][5] = value
    np.savez(path, **arrays)
    with pytest.raises(TableError, match=says):
        read(path)


def test_features_that_do_not_belong_to_the_table_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    write(small_table(), path)
    for wrong in (np.zeros((3, 1, 6), np.float16), np.zeros((210, 1, 5), np.float16), np.full((210, 1, 6), np.nan, np.float16)):
        np.savez(features_path(path), features=wrong)
        with pytest.raises(TableError, match="its column 'features'"):
            read(path, features=True)


def test_a_file_that_says_to_be_huge_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.npz"
    write(small_table(), path)
    monkeypatch.setattr("ansorlite.dataset.arrays.LARGEST", 1 << 10)
    with pytest.raises(TableError, match="it says to hold more than"):
        read(path)


def test_a_foreign_table_names_its_programs_by_values() -> None:
    table = small_table(kind=Kind.FOREIGN)
    assert len(set(type(table)(**{**vars_of(table), "traces": ()}).names)) == len(table)


def vars_of(table: object) -> dict[str, Any]:
    return {name: getattr(table, name) for name in type(table).__dataclass_fields__}  # type: ignore[attr-defined]
