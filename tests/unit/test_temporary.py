"""Folders for files that nobody needs once a process is over: gone with it, however it ends, and not before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansorlite.errors import ArgumentError
from ansorlite.temporary import TemporaryFolder, make_folder

#: Makes one in $TMPDIR, with a file in it, and is killed or ends by itself.
_MAKE = """
import os, signal, sys
from ansorlite.temporary import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "file").write_text("something")
os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == "killed" else folder.close()
"""


def _process(place: Path, how: str) -> int:
    environment = {**os.environ, "TMPDIR": str(place)}
    return subprocess.run([sys.executable, "-c", _MAKE, how], env=environment, check=False).returncode


def _make_old(place: Path) -> None:
    for folder in place.iterdir():
        os.utime(folder, (0, 0), follow_symlinks=False)


def test_it_is_there_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with TemporaryFolder() as folder:
        (folder / "file").write_text("something")
        assert list(tmp_path.iterdir()) == [folder]
        assert folder.stat().st_mode & 0o777 == 0o700
    other = TemporaryFolder()
    other.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    assert _process(tmp_path, "killed") == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    _process(tmp_path, "closed")
    assert list(tmp_path.iterdir()) == [left], "it may be one that was made just now, and is not locked yet"
    _make_old(tmp_path)
    _process(tmp_path, "closed")
    assert list(tmp_path.iterdir()) == []


def test_those_of_living_processes_and_what_is_no_such_folder_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("something")
    (tmp_path / "ansorlite-work-link").symlink_to(elsewhere)
    (tmp_path / "ansorlite-work-file").write_text("something")
    make_folder("ansorlite-program-")
    with TemporaryFolder():
        _make_old(tmp_path)
        before = set(tmp_path.rglob("*"))
        assert _process(tmp_path, "closed") == 0
        assert set(tmp_path.rglob("*")) == before


def test_where_there_is_no_place_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(ArgumentError, match=r"no folder for temporary files .*set TMPDIR to one"):
        TemporaryFolder()
