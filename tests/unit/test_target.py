"""Machines by name: what forces them, what can run here, and that no more is generated than they have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import pytest

import ansorlite as al
from ansorlite import processor
from ansorlite.codegen import assembly, direct, team
from ansorlite.codegen.machine import machine
from ansorlite.errors import TargetError
from ansorlite.machine.families import FAMILIES
from ansorlite.machine.kept import machine_of
from ansorlite.platforms import build
from ansorlite.search.default import default_candidate
from ansorlite.sketch.program import lower
from ansorlite.spaces.derivation import derive
from ansorlite.target import LEVELS, NAMED, PROCESSORS, TARGET_VARIABLE, Target, host, obstacle, process_target, resolve
from ansorlite.task import Task
from tests import workloads

ROOT = Path(__file__).parents[2]
ELSEWHERE = NAMED["aarch64" if processor.ARCHITECTURE == "x86_64" else "x86-64-v2"]


def test_a_name_is_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TARGET_VARIABLE, raising=False)
    here = host()
    for name, target in NAMED.items():
        if name == here.cpu:
            assert resolve(name) == here
        elif name in PROCESSORS:
            assert replace(resolve(name), threads=1) == target
        else:
            assert replace(resolve(name), threads=1, l1=target.l1, l2=target.l2, l3=target.l3) == target
        monkeypatch.setenv(TARGET_VARIABLE, name)
        assert host() == resolve("llvm") == resolve(name)
        assert host(3) == replace(resolve(name), threads=3)
    assert len({target.key for target in NAMED.values()}) == len(NAMED)
    monkeypatch.setenv(TARGET_VARIABLE, "llvm")
    assert host() == here


def test_a_processor_is_found_by_llvms_name_with_its_constants() -> None:
    """Whatever constants are shipped for can be asked for by name, and LLVM knows it."""
    assert PROCESSORS.keys() == FAMILIES.keys()
    for name, target in PROCESSORS.items():
        assert target.cpu == name
        assert target.machine == FAMILIES[name] == machine_of(name, target.features, target.vector_bytes)
        assert target.triple in {level.triple for level in LEVELS.values()}
        assert target.features.split(",") == list(dict.fromkeys(target.features.split(",")))
    assert re.search(r"fmla\s+v\d+\.4s", matmul_for(NAMED["neoverse-n1"]))
    assert re.search(r"fmla\s+z\d+\.s", matmul_for(NAMED["neoverse-v1"]))
    assert re.search(r"vfmadd.*zmm", matmul_for(NAMED["znver4"]))


def test_the_name_of_this_processor_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TARGET_VARIABLE, raising=False)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "haswell")
    assert resolve("haswell") == host()
    assert resolve("znver3") != host()


def test_what_a_processor_is_said_to_lack_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a virtual machine, a processor may lack what LLVM takes it to have."""
    monkeypatch.setattr(processor, "ARCHITECTURE", "x86_64")
    asked: list[str] = []
    monkeypatch.setattr(processor, "missing", lambda needed: asked.extend(needed) or ())
    assert obstacle(replace(NAMED["haswell"], features="-avx2,+fma", l3=54321)) is None
    assert "fma" in asked
    assert "avx2" not in asked


def test_unknown_names_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match=r"unknown target 'x86-64-v9'; the targets are: llvm, x86-64-v2, .*, aarch64, "):
        resolve("x86-64-v9")
    monkeypatch.setenv(TARGET_VARIABLE, "toaster")
    with pytest.raises(TargetError, match="ANSORLITE_TARGET is 'toaster'; the targets are: llvm, x86-64-v2, "):
        host()


def test_what_the_processor_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert obstacle(process_target()) is None
    assert obstacle(ELSEWHERE) == f"this processor is {processor.ARCHITECTURE}, not {ELSEWHERE.architecture}"
    mine = replace(NAMED["x86-64-v4"], triple=f"{processor.ARCHITECTURE}-linux", l3=12345)
    monkeypatch.setattr(processor, "missing", lambda needed: tuple(name for name in needed if "512f" in name))
    assert obstacle(mine) == "this processor has no avx512f"
    # A level of x86-64 has its features, whether they are listed or not.
    assert obstacle(replace(mine, features="")) == "this processor has no avx512f"


def test_code_that_cannot_run_is_not_loaded() -> None:
    task = Task(workloads.matmul(4, 4, 4), ELSEWHERE)
    with pytest.raises(TargetError, match=r"code for llvm .* cannot run here: this processor is \w+, not \w+; run it on such"):
        al.compile(task)
    with pytest.raises(TargetError, match="run it on such a machine, or compile for this one"):
        al.tune(task, trials=1)


_BOUNDED = """
import json
import ansorlite as al
import numpy as np
from ansorlite.target import process_target
from tests import workloads
kernel = al.compile(al.Task(workloads.matmul(40, 40, 40)))
a, b = np.ones((40, 40), "f4"), np.ones((40, 40), "f4")
assert (kernel(a, b) == 40).all()
print(json.dumps([process_target().key, kernel.source("asm")]))
"""


@pytest.mark.skipif(processor.ARCHITECTURE != "x86_64", reason="levels of x86-64 run on x86-64 alone")
def test_a_forced_target_bounds_what_is_generated() -> None:
    environment = {**os.environ, TARGET_VARIABLE: "x86-64-v2"}
    words = [sys.executable, "-c", _BOUNDED]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    key, text = json.loads(done.stdout)
    assert "x86-64-v2" in key
    assert "mulps" in text
    assert not re.search(r"[yz]mm|\tv[a-z]", text)


def matmul_for(target: Target) -> str:
    task = Task(workloads.matmul(32, 32, 32), target)
    sketches = derive(task)
    return assembly(build(lower(task, default_candidate(task, sketches)), target), target)


@pytest.mark.parametrize(("name", "has", "lacks"), [
    ("x86-64-v2", "mulps", r"[yz]mm"),
    ("x86-64-v3", r"vfmadd.*ymm", r"zmm|%k\d"),
    ("x86-64-v4", r"vfmadd.*zmm", r"vpdpbusd"),
    ("aarch64", r"fmla\s+v\d+\.4s", r"\bz\d+\.s"),
    ("aarch64+sve", r"fmla\s+z\d+\.s", r"usdot"),
])  # fmt: skip
def test_each_has_its_instructions(name: str, has: str, lacks: str) -> None:
    text = matmul_for(NAMED[name])
    assert re.search(has, text)
    assert not re.search(lacks, text)


@pytest.mark.parametrize("name", LEVELS)
def test_the_runtime_is_made_of_the_same_instructions(name: str) -> None:
    """The thread team and the calls from Python are compiled for every target, and by the baseline where that is asked for."""
    target = NAMED[name]
    for text in (team.text(target, 1000), direct.text(target, object.__basicsize__)):
        printed = machine(target).emit_assembly(llvm.parse_assembly(text, llvm.create_context()))
        assert printed
        if name == "x86-64-v2":
            assert not re.search(r"[yz]mm|\tv[a-z]", printed)


def test_dot_products_of_the_named() -> None:
    assert NAMED["aarch64"].dots == ()
    assert {op.name for op in NAMED["aarch64+dotprod"].dots} == {"DOT_S8S8", "DOT_U8U8"}
    for name in ("x86-64-v4+bf16", "aarch64+bf16"):
        assert "DOT_BF16" in {op.name for op in NAMED[name].dots}
    assert {op.name for op in NAMED["aarch64+sve"].dots} == {"DOT_S8S8", "DOT_U8U8"}
    assert {op.name for op in NAMED["neoverse-v1"].dots} == {"DOT_S8S8", "DOT_U8U8", "DOT_U8S8", "DOT_BF16"}
    assert {op.name for op in NAMED["x86-64-v3"].dots} == {"DOT_U8S7", "DOT_S16S16"}


def test_caches_that_linux_does_not_tell_of_have_default_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder; no file of the size, as on many virtual machines; nothing in it; and what it looks like else."""
    monkeypatch.setattr(processor, "_CACHES", tmp_path)
    assert processor.cache_bytes(1, 5) == 5
    for number, size in enumerate((None, "", "unknown", "48K", "2M")):
        entry = tmp_path / f"index{number}"
        entry.mkdir()
        (entry / "level").write_text("2\n" if size == "2M" else "1\n")
        (entry / "type").write_text("Data\n")
        if size is not None:
            (entry / "size").write_text(size)
        assert processor.cache_bytes(1, 5) == (48 << 10 if number >= 3 else 5)
    assert processor.cache_bytes(2, 5) == 2 << 20
    monkeypatch.delenv(TARGET_VARIABLE, raising=False)
    assert host().l1 == 48 << 10
