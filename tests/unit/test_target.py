"""The machine's facts, also where the system does not tell them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorlite import target


def test_caches_that_linux_does_not_tell_of_have_default_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder; no file of the size, as on many virtual machines; nothing in it; and what it looks like else."""
    monkeypatch.setattr(target, "_CACHES", tmp_path)
    assert target._cache_bytes(1, 5) == 5
    for number, size in enumerate((None, "", "unknown", "48K", "2M")):
        entry = tmp_path / f"index{number}"
        entry.mkdir()
        (entry / "level").write_text("2\n" if size == "2M" else "1\n")
        (entry / "type").write_text("Data\n")
        if size is not None:
            (entry / "size").write_text(size)
        assert target._cache_bytes(1, 5) == (48 << 10 if number >= 3 else 5)
    assert target._cache_bytes(2, 5) == 2 << 20
    assert target.host().l1 == 48 << 10
