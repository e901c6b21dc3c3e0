"""The loops that a machine is measured with: made for every kind of processor, and run on this one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansorlite.calibration import core, memory
from ansorlite.calibration.calibrate import CORE, agreed, straight_line
from ansorlite.calibration.loop import HEAD, Loop
from ansorlite.calibration.stopwatch import Stopwatch, storage
from ansorlite.codegen.builder import Module
from ansorlite.codegen.machine import machine, optimise
from ansorlite.machine.families import MIDDLE
from ansorlite.target import LEVELS, Target, process_target
from ansorlite.te.ops import BinaryOp

OTHERS = {
    "runs": memory.runs(1 << 16, 2),
    "pages": memory.pages(16),
    "streamed": memory.streamed(1 << 14, 3),
    "scattered": memory.scattered(1 << 14, 2, 3),
    "beside": memory.beside(1 << 14, 4, 2, 3),
    "code": core.straight(128),
    **{op.value: core.dot_product(op) for op in (BinaryOp.DOT_U8S7, BinaryOp.DOT_S16S16, BinaryOp.DOT_BF16)},
}


def assembly(target: Target, body: core.Body) -> str:
    module = Module(target)
    loop = Loop(module, "loop")
    body(loop)
    loop.define()
    text: str = machine(target).emit_assembly(optimise(module.text(), target))
    return text


@pytest.mark.parametrize("target", LEVELS)
@pytest.mark.parametrize("name", [*CORE, *OTHERS])
def test_every_loop_is_made_for_every_processor(name: str, target: str) -> None:
    body = {**CORE, **OTHERS}[name]
    assert "loop:" in assembly(LEVELS[target], body)


def test_what_is_measured_is_not_optimised_away() -> None:
    target = LEVELS["x86-64-v3"]
    found = {name: assembly(target, body) for name, body in {**CORE, **OTHERS}.items()}
    assert len(re.findall("vfmadd", found["arithmetic"])) == core.chains(_loop(target))
    assert len(re.findall(r"\tv(?:add|xor)\w+|\tadd|\txor", found["clock"])) >= 64
    assert len(re.findall("vdivps", found["div"])) == 8
    assert len(re.findall("vfmadd", found["code"])) == 64
    assert len(re.findall("vpmaddubsw", found["dot_u8s7"])) == len(re.findall("vpmaddwd", found["dot_s16s16"])) == 12
    # Each of four vectors is multiplied into three accumulators.
    assert len(re.findall("vfmadd", found["streamed"])) == len(re.findall("vfmadd", found["scattered"])) == 4 * 3
    assert len(re.findall("vfmadd", found["beside"])) == 4 * 3
    assert len(set(re.findall(r"vbroadcastss\t(\d+)\(", found["code"]))) == 64
    # As many different loads, chains and stores as are counted: none is merged with another.
    assert len(set(re.findall(r"vxorps\t(\d+)\(", found["issue"]))) == 6
    assert len(re.findall(r"\txorq", found["issue"])) == 9
    assert len(re.findall(r"\t(?:vpinsrd\t\$\d, |vmovd\t)\d+\(", found["gather"])) == 4 * 8
    assert len(re.findall(r"\tv?maskmovps|\tvpmaskmovd", found["masked_store"])) == 16
    # A short loop that lies in two lines of code would take a cycle more.
    assert re.search(r"\.p2align\t6.*\n\.\w+:\n(?:\t#.*\n)*\taddq\t\$32", found["branch"])
    # More accumulators than registers: each is loaded and stored, in a cache line of its own.
    assert len(re.findall(r"vmovaps\t%ymm\d+, -?\d*\(%rsp\)", found["spill"])) >= core.too_many(target)


def _loop(target: Target) -> Loop:
    return Loop(Module(target), "loop")


def test_loops_run_and_take_time() -> None:
    bodies = {**CORE, **OTHERS}
    watch = Stopwatch(process_target(), bodies, storage(1 << 18))
    for name in bodies:
        assert watch.once(name, 10) > 0
    assert (watch.data[HEAD - 8 : HEAD] != 0).any()


def test_sweeps_take_turns_and_the_least_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of the one is of three things, of the other of one; the second attempt at it is the fastest."""
    bodies = {"three": lambda loop: 3 * memory.pages(1)(loop), "one": memory.pages(1)}
    watch = Stopwatch(process_target(), bodies, storage(1 << 13))
    slow, asked = iter([9.0, 6.0, 4.5, 3.0, 9.0, 12.0]), []

    def once(name: str, turns: int) -> float:
        asked.append((name, turns))
        return next(slow)

    monkeypatch.setattr(watch, "once", once)
    assert watch.sweeps(6, 3) == {"three": 4.5 / 6, "one": 3.0 / 6}
    assert asked == [("three", 2), ("one", 6)] * 3


def test_what_two_passes_differ_on_stays_as_it_was() -> None:
    """All but the clock are cycles, rates or shares; a hundredth of a cycle is nothing, however much of the whole it is."""
    one = replace(MIDDLE, clock=3.0e9, div=6.0, spill=1.0, masked=0.0, near_overlap=0.2, code=2048.0)
    other = replace(MIDDLE, clock=3.1e9, div=6.4, spill=1.5, masked=0.01, near_overlap=0.4, code=2048.0)
    row, unsteady = agreed(MIDDLE, one, other)
    assert unsteady == ["spill", "near_overlap"]
    assert row == replace(MIDDLE, clock=3.05e9, div=6.2, masked=0.005, code=2048.0)
    assert agreed(MIDDLE, one, one) == (one, [])


def test_code_that_is_kept_decoded_is_the_longest_at_full_speed() -> None:
    assert straight_line({512: 0.27, 2048: 0.26, 3072: 0.26, 4096: 0.40, 8192: 0.5}, 0.2) == (3072.0, 2.0)
    assert straight_line({512: 0.27, 8192: 0.26}, 0.2) == (8192.0, 5.0)
