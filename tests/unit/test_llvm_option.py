"""LLVM's options hold for the whole process: others in it are to find them as they were."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from ansorlite.codegen.compile import assembly
from ansorlite.llvm_option import options_for_emitted_code
from ansorlite.loops.nodes import Function
from ansorlite.platforms import build
from ansorlite.target import resolve
from tests.unit.loops.build import argument, load, loop, store

ALIGNMENT = "-x86-experimental-pref-innermost-loop-alignment"


@pytest.mark.parametrize(
    ("architecture", "own", "default"),
    [("aarch64", [], []), ("x86_64", [f"{ALIGNMENT}=6"], [f"{ALIGNMENT}=4"])],  # LLVM ends the process at an unknown option
)
def test_options_are_set_back_whatever_happens(
    architecture: str, own: list[str], default: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda _, option: said.append(option))

    def compile_badly() -> None:
        with options_for_emitted_code(architecture):
            raise RuntimeError("LLVM gave up")

    with pytest.raises(RuntimeError, match="gave up"):
        compile_badly()
    ours, defaults = ["-disable-lsr=true", "-dag-maps-huge-region=100"], ["-disable-lsr=false", "-dag-maps-huge-region=1000"]
    assert said == [*ours, *own, *defaults, *default]


@pytest.mark.parametrize(("name", "aligned"), [("x86-64-v3", True), ("x86-64-v4", True), ("neoverse-n1", False)])
def test_innermost_loops_of_x86_begin_with_a_cache_line(name: str, aligned: bool) -> None:
    target, a, b = resolve(name), argument("a", 64, 64), argument("b", 64)
    body = loop("i", 64, lambda i: loop("k", 64, lambda k: store(b, (i,), load(b, i) + load(a, i, k))))
    code = assembly(build(Function("sums", (a, b), 1, body), target), target)
    assert (".p2align\t6" in code) == aligned
