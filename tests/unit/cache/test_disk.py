"""The cache: what was put comes back, whole or not at all."""

from __future__ import annotations

import errno
import logging
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from ansorlite.cache.disk import CACHE_VARIABLE, DiskCache, NoCache, _warn_of_no_home, default_cache, key
from ansorlite.cache.parts import Part

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
    (tmp_path / "thesis.txt").write_bytes(bytes(9000))
    os.utime(tmp_path / "thesis.txt", (0, 0))
    (tmp_path / f".{0:016x}").write_bytes(bytes(1000))  # of a process that was killed
    os.utime(tmp_path / f".{0:016x}", (0, 0))
    for number, data in enumerate(noise):
        DiskCache(tmp_path).put(key(number), data)
        os.utime(tmp_path / key(number), (number, number))
    assert DiskCache(tmp_path).get(key(0)) == noise[0]  # used just now
    DiskCache(tmp_path, limit=8000).put(key("new"), DATA)
    assert [number for number in range(10) if DiskCache(tmp_path).get(key(number))] == [0, 8, 9]
    assert DiskCache(tmp_path).get(key("new")) == DATA
    # What is not the cache's own is left alone, whatever folder was chosen for it.
    assert (tmp_path / "thesis.txt").exists()
    assert not (tmp_path / f".{0:016x}").exists()


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

    monkeypatch.setattr("ansorlite.cache.disk.write_parts", full)
    DiskCache(tmp_path).put_parts("a", [DATA])
    assert list(tmp_path.iterdir()) == []


STRANGER = 12345

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file another user's")


def refused(cache: DiskCache, caplog: pytest.LogCaptureFixture, why: str) -> None:
    """Neither of what was put as ``small`` and ``large`` is used, and that is said once."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert cache.get("small") is None
        assert cache.get_parts("large") is None
    (said,) = [record.getMessage() for record in caplog.records]
    assert why in said
    assert "set ANSORLITE_CACHE_DIR to a folder of your own" in said
    assert "\n" not in said


def filled(folder: Path) -> Path:
    """A cache at ``folder``."""
    DiskCache(folder).put("small", DATA)
    DiskCache(folder).put_parts("large", [DATA])
    return folder


@as_root
def test_files_of_others_are_not_used_and_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = filled(tmp_path / "cache")
    for name in ("small", "large"):
        os.chown(folder / name, STRANGER, -1)
    refused(DiskCache(folder), caplog, f"small in {folder} belongs to user {STRANGER}, not to you")
    filled(folder)
    assert DiskCache(folder).get("small") == DATA
    assert DiskCache(folder).get_parts("large") is not None


@as_root
def test_a_folder_of_others_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = filled(tmp_path / "cache")
    os.chown(folder, STRANGER, -1)
    cache = DiskCache(folder)
    refused(cache, caplog, f"the folder {folder} belongs to user {STRANGER}, not to you")
    before = (folder / "small").stat().st_mtime_ns
    cache.put("small", DATA)
    cache.put("other", DATA)
    assert len(caplog.records) == 1
    assert (folder / "small").stat().st_mtime_ns == before
    assert not (folder / "other").exists()


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int) -> None:
    folder = filled(tmp_path / "cache")
    folder.chmod(mode)
    refused(DiskCache(folder), caplog, f"the folder {folder} may be written to by others (its mode is {mode:o})")
    folder.chmod(0o755)  # read by others it may be
    assert DiskCache(folder).get("small") == DATA


@pytest.mark.parametrize("mode", [0o660, 0o602])
def test_files_that_others_may_write_to_are_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int) -> None:
    folder = filled(tmp_path / "cache")
    for name in ("small", "large"):
        (folder / name).chmod(mode)
    refused(DiskCache(folder), caplog, f"the file small in {folder} may be written to by others (its mode is {mode:o})")


def test_what_is_kept_is_the_users_whatever_others_may_do_by_default(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = filled(tmp_path / "cache")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "small", folder / "large")] == [0o700, 0o600, 0o600]
    assert DiskCache(folder).get("small") == DATA


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = filled(tmp_path / "cache"), filled(tmp_path / "elsewhere")
    (folder / "link").symlink_to(elsewhere / "small")
    os.mkfifo(folder / "pipe", 0o600)
    cache = DiskCache(folder)
    for name in ("link", "pipe"):
        assert cache.get(name) is None
        assert cache.get_parts(name) is None
        cache.put(name, DATA[:5])
        assert cache.get(name) == DATA[:5]
    assert DiskCache(elsewhere).get("small") == DATA
    # The folder itself may be a link to where there is room: it is asked of what is there.
    (tmp_path / "there").symlink_to(folder)
    assert DiskCache(tmp_path / "there").get("small") == DATA


def test_who_has_no_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME")

    def nobody(_: int) -> None:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    _warn_of_no_home.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert isinstance(default_cache(), NoCache)
        assert isinstance(default_cache(), NoCache)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "no home folder" in said
    assert CACHE_VARIABLE in said


@as_root
def test_a_program_of_a_user_without_home_and_entry_runs(tmp_path: Path) -> None:
    code = """if True:
        import os
        import numpy as np, ansorlite as al
        from ansorlite import te
        a = te.placeholder((4,), "float32", "a")
        task = al.Task([a, te.compute((4,), lambda i: a[i] + 1.0)])
        al.compile(task)  # whatever that user may not read is imported now
        del os.environ["ANSORLITE_CACHE_DIR"]
        os.setuid(54321)
        for _ in range(2):
            print(al.compile(task)(np.zeros(4, np.float32)).tolist())
    """
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), CACHE_VARIABLE: ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == 2 * "[1.0, 1.0, 1.0, 1.0]\n"
    assert done.stderr.count("no home folder") == 1
    assert done.stderr.count("\n") == 1
