"""LLVM's options hold for the whole process: others in it are to find them as they were."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from ansorlite.llvm_option import options_for_emitted_code


def test_options_are_set_back_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda _, option: said.append(option))

    def compile_badly() -> None:
        with options_for_emitted_code():
            raise RuntimeError("LLVM gave up")

    with pytest.raises(RuntimeError, match="gave up"):
        compile_badly()
    assert said == ["-disable-lsr=true", "-dag-maps-huge-region=100", "-disable-lsr=false", "-dag-maps-huge-region=1000"]
