"""Files that are written where the user says: whole, or told in a sentence why not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ansorlite.errors import ArgumentError
from ansorlite.writing import replacing, writing


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    path.write_text("before")
    with path.open() as running:
        with replacing(path) as new:
            new.write_text("after")
        assert running.read() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def _fill_the_disk(path: Path) -> None:
    with replacing(path) as new:
        new.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_cannot_be_written_whole_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    path.write_text("before")
    with pytest.raises(ArgumentError, match=r"model\.so cannot be written \(No space left on device\)"):
        _fill_the_disk(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_without_a_number_tells_what_it_says(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"cannot be written \(8 requested and 0 written\)"), writing(tmp_path):
        raise OSError("8 requested and 0 written")
