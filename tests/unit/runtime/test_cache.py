"""The cache: what was put comes back, whole or not at all."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from ansorlite.runtime.cache import CACHE_VARIABLE, DiskCache, NoCache, default_cache, key
from ansorlite.runtime.parts import Part

DATA = bytes(range(256)) * 8


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    DiskCache(tmp_path / "new").put("a", DATA)
    other = DiskCache(tmp_path / "new")
    assert other.get("a") == DATA
    assert other.get("b") is None
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]


@pytest.mark.parametrize("damage", [lambda d: d[:-3], lambda d: d[:0], lambda d: d[:40], lambda d: bytes(32) + d[32:]])
def test_damaged_files_are_as_if_they_were_not_there(tmp_path: Path, damage: object) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", DATA)
    (tmp_path / "a").write_bytes(damage((tmp_path / "a").read_bytes()))  # type: ignore[operator]
    assert cache.get("a") is None
    cache.put("a", DATA)
    assert cache.get("a") == DATA


def test_what_was_used_longest_ago_is_removed(tmp_path: Path) -> None:
    noise = [os.urandom(1000) for _ in range(10)]
    for number, data in enumerate(noise):
        DiskCache(tmp_path).put(f"{number}", data)
        os.utime(tmp_path / f"{number}", (number, number))
    assert DiskCache(tmp_path).get("0") == noise[0]  # used just now
    DiskCache(tmp_path, limit=8000).put("new", DATA)
    assert [number for number in range(10) if DiskCache(tmp_path).get(f"{number}")] == [0, 8, 9]
    assert DiskCache(tmp_path).get("new") == DATA


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file")
    with caplog.at_level(logging.WARNING):
        cache.put("a", DATA)
        cache.put("b", DATA)
    assert caplog.text.count("cannot be kept") == 1
    assert cache.get("a") is None


def test_the_environment_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "mine"))
    default_cache().put("a", DATA)
    assert (tmp_path / "mine" / "a").exists()
    monkeypatch.setenv(CACHE_VARIABLE, "")
    assert isinstance(default_cache(), NoCache)
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    default_cache().put("a", DATA)
    assert (tmp_path / "xdg" / "ansorlite" / "a").exists()


def test_keys_tell_everything_apart() -> None:
    assert key("a", 1) == key("a", 1)
    assert len({key("a", 1), key("a", 2), key("a"), key("a1"), key(1, "a")}) == 5


def test_parts_come_back_as_they_were(tmp_path: Path) -> None:
    parts = [b"", DATA, bytes(100)]
    DiskCache(tmp_path / "new").put_parts("a", parts)
    found = DiskCache(tmp_path / "new").get_parts("a")
    assert found is not None
    assert [bytes(part) for part in found] == parts
    assert all(part.readonly for part in found)
    assert DiskCache(tmp_path / "new").get_parts("b") is None


@pytest.mark.parametrize("damage", [lambda d: d[:-3], lambda d: d[:0], lambda d: d[:5], lambda d: b"\1" + d[1:], lambda d: d + d])
def test_damaged_parts_are_as_if_they_were_not_there(tmp_path: Path, damage: object) -> None:
    cache = DiskCache(tmp_path)
    cache.put_parts("a", [DATA, DATA])
    (tmp_path / "a").write_bytes(damage((tmp_path / "a").read_bytes()))  # type: ignore[operator]
    assert cache.get_parts("a") is None


def test_what_would_take_much_of_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=4 * len(DATA))
    cache.put_parts("large", [DATA, b"."])
    assert cache.get_parts("large") is None
    cache.put_parts("small", [DATA])
    assert cache.get_parts("small") is not None


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: BinaryIO, _: Sequence[Part]) -> None:
        file.write(DATA)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ansorlite.runtime.cache.write_parts", full)
    DiskCache(tmp_path).put_parts("a", [DATA])
    assert list(tmp_path.iterdir()) == []
