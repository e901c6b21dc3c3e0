"""Registers of SVE, of a length that is known: what the code is made of, and that it refuses others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm
import numpy as np
import pytest

from ansorlite import processor, te
from ansorlite.codegen import assembly, checksum, direct, entry, team
from ansorlite.codegen.machine import machine
from ansorlite.errors import TargetError
from ansorlite.export import header, public_side
from ansorlite.export.description import Description
from ansorlite.platforms import build
from ansorlite.runtime.linker import linker
from ansorlite.search.default import default_candidate
from ansorlite.sketch.program import lower
from ansorlite.spaces.derivation import derive
from ansorlite.target import LEVELS, NAMED, Target, obstacle
from ansorlite.target.here import _obstacle
from ansorlite.task import Task
from tests import emulated, workloads

SVE: Final = LEVELS["aarch64+sve"]
NEON: Final = LEVELS["aarch64+dotprod"]


def elements(n: int, stride: int) -> list[te.Tensor]:
    """Every so many-th of a row."""
    a = te.placeholder((n * stride,), name="A")
    return [a, te.compute((n,), lambda i: a[i * stride] * 2.0, name="B")]


def looked_up(n: int) -> list[te.Tensor]:
    """A table's element for each index."""
    table, indices = te.placeholder((1000,), name="T"), te.placeholder((n,), "int32", name="I")
    return [table, indices, te.compute((n,), lambda i: table[te.minimum(te.maximum(indices[i], 0), 999)], name="B")]


def code(tensors: list[te.Tensor], target: Target) -> str:
    task = Task(tensors, replace(target, threads=1))
    sketches = derive(task)
    return assembly(build(lower(task, default_candidate(task, sketches)), task.target), task.target)


@pytest.mark.parametrize(("tensors", "instruction"), [
    (workloads.matmul(32, 32, 32), r"fmla\s+z\d+\.s"),
    (workloads.matmul(32, 29, 32), r"st1w\s+\{ ?z\d+\.s ?\}, p\d"),
    (elements(13, 1), r"ld1w\s+\{ ?z\d+\.s ?\}, p\d+/z, \[x"),
    (looked_up(64), r"ld1w\s+\{ ?z\d+\.[sd] ?\}, p\d+/z, \[x\d+, z\d+\.[sd]"),
    (workloads.quantised_matmul(16, 16, 16, ("int8", "int8")), r"sdot\s+z\d+\.s"),
], ids=["multiply-add", "masked store", "masked load", "gather", "dot product"])  # fmt: skip
def test_it_is_made_of_instructions_of_sve(tensors: list[te.Tensor], instruction: str) -> None:
    found = code(tensors, SVE)
    assert re.search(instruction, found)
    assert re.search(r"ptrue|whilelo", found)
    assert not re.search(r"\bz\d+\.[bhsd]", code(tensors, NEON))


@pytest.mark.parametrize("length", [32, 64, 128, 256])
def test_registers_of_every_length_that_is_used(length: int) -> None:
    target = replace(SVE, vector_bytes=length)
    assert target.sve_bytes == length
    assert f"vscale_range({length // 16},{length // 16})" in build_text(target)
    assert re.search(r"fmla\s+z\d+\.s", code(workloads.matmul(64, 64, 64), target))


def build_text(target: Target) -> str:
    task = Task(elements(64, 1), target)
    sketches = derive(task)
    return build(lower(task, default_candidate(task, sketches)), target).llvm


def test_vectors_of_16_bytes_are_neons_and_right_for_any_length() -> None:
    target = replace(SVE, vector_bytes=16)
    assert target.sve_bytes is None
    assert "vscale_range" not in build_text(target)
    assert NAMED["x86-64-v4"].sve_bytes is None


def test_other_lengths_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "ARCHITECTURE", "aarch64")
    monkeypatch.setattr(processor, "missing", lambda _: ())
    _obstacle.cache_clear()
    try:
        for length, reason in (
            (32, None),
            (16, "SVE's registers have 16 bytes here, not 32"),
            (None, "SVE's registers have no bytes here, not 32"),
        ):
            monkeypatch.setattr(processor, "sve_bytes", lambda length=length: length)
            _obstacle.cache_clear()
            assert obstacle(SVE) == reason
            assert obstacle(NEON) is None
        with pytest.raises(TargetError, match=r"cannot run here: SVE's registers have no bytes here, not 32; run it on such"):
            linker(SVE)
    finally:
        _obstacle.cache_clear()


def test_there_are_none_on_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "ARCHITECTURE", "x86_64")
    assert processor.sve_bytes() is None
    assert processor.other_vectors(None) is None


def description(weights: np.ndarray) -> Description:
    facts = (weights.nbytes, f"{checksum.checksum(weights):016x}", "m.weights", (), 16, "llvm")
    return Description("m", "0", SVE.key, ("neon", "sve"), 32, (), (), 64, *facts)


def test_an_exported_library_makes_no_instance_where_registers_are_of_another_length(tmp_path: Path) -> None:
    """Nothing else would tell: its code would run, and leave out what is in the rest of longer registers."""
    weights = np.arange(64, dtype=np.uint8)
    facts = description(weights)
    assert "if SVE's registers have not 32 bytes" in header.text(facts)
    inside = public_side.text(replace(facts, weights=None), SVE)
    assert "br i1 %suits, label %suited, label %none" in inside
    assert "vscale" not in public_side.text(replace(facts, weights=None), NEON)
    llvm.parse_assembly(inside, llvm.create_context()).verify()
    if reason := emulated.obstacle():
        pytest.skip(f"an exported library is not run: {reason}")
    weights.tofile(tmp_path / "m.weights")
    symbols = (public_side.ENTRY, entry.profiled(public_side.ENTRY), direct.DIRECT, team.FORGET)
    rest = "\n".join(f"define hidden void @{name}() {{\n  ret void\n}}" for name in symbols)
    context = llvm.create_context()
    module = llvm.parse_assembly(public_side.text(facts, SVE), context)
    # Kernels, the team and Python's way in are of no matter here.
    for text in (checksum.text(SVE), f'target triple = "{SVE.triple}"\n{rest}'):
        module.link_in(llvm.parse_assembly(text, context))
    library = machine(SVE).emit_object(module)
    for length, made in ((16, False), (32, True), (64, False)):
        there = emulated.started(length)
        create = there.symbol(there.load(library), "m_create")
        assert bool(there.call(create, bytes(tmp_path / "m.weights"))) is made
        assert not there.call(create, bytes(tmp_path / "nothing"))


def test_conditions_of_64_bit_lanes_become_numbers() -> None:
    """LLVM ends the process over ``uitofp`` of such a mask."""
    words = te.placeholder((37,), "int64", name="A")
    for dtype in ("float32", "float16", "bfloat16", "int8", "int32"):
        flags = te.compute((37,), lambda i, dtype=dtype: te.cast(te.cast(words[i], "bool"), dtype), name="B")
        assert code([words, flags], SVE)
