"""The runtime's own modules are compiled once, and taken from the cache by other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorlite.cache.disk import CACHE_VARIABLE
from ansorlite.runtime import modules
from ansorlite.runtime.pages import zeros
from ansorlite.target import host

TEXT = "define i64 @answer() {\n  ret i64 42\n}\n"


def test_a_module_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    code = modules.object_code(TEXT, host())
    assert code.startswith(b"\x7fELF")
    assert b"answer" in code
    other = modules.object_code(TEXT.replace("answer", "question"), host())
    assert b"question" in other

    def no_machine(*_: object) -> None:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(modules, "machine", no_machine)
    assert modules.object_code(TEXT, host()) == code
    monkeypatch.setenv(CACHE_VARIABLE, "")
    with pytest.raises(AssertionError, match="compiled again"):
        modules.object_code(TEXT, host())


@pytest.mark.parametrize("nbytes", [0, 1, 100, 5 << 20])
def test_zeros_are_the_owners_to_write(nbytes: int) -> None:
    block = zeros(nbytes)
    assert block.nbytes == nbytes
    assert not block.any()
    block[:] = 7
    assert nbytes == 0 or block.ctypes.data % 64 == 0
    assert not zeros(nbytes).any()
