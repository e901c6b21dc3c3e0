"""Programs that unroll a long body far are refused, wherever they are compiled; what is long but shared is not.

They are of a machine that this processor is: the tuner runs, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ansorlite as al
from ansorlite.codegen import compile as compiling
from ansorlite.codegen.object import Object
from ansorlite.errors import AnsorliteError, ProgramSizeError
from ansorlite.loops.nodes import Function, LoopKind, Role, Stmt
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.platforms import build
from ansorlite.programs.kernels import compile_candidate
from ansorlite.records import Outcome
from ansorlite.search import default_candidate
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.spaces import derive
from ansorlite.target import process_target
from ansorlite.te.expr import Var
from tests.chains import arithmetic, chain, functions
from tests.running import run_compiled
from tests.unit.loops.build import argument, load, loop, store


def unrolled(task: al.Task) -> Candidate:
    """The program of ``task`` that unrolls its largest tile of no more than 512 elements, one by one."""
    (sketch,) = derive(task)
    tiles, *others = sketch.holes
    assert tiles.table is not None
    spans = tiles.table.spans[:, -2]
    largest = int(np.argmax(np.where(spans <= 512, spans, 0)))
    return sketch.candidate((largest, *(0 for _ in others[:-1]), others[-1].size - 1))


def test_a_program_of_too_many_instructions_is_refused_wherever_it_is_compiled() -> None:
    task = chain(arithmetic, 60, process_target())
    candidate = unrolled(task)
    with pytest.raises(ProgramSizeError, match="unrolls to more than 30000 instructions in one function") as refused:
        compile_candidate(task, candidate)
    assert isinstance(refused.value, AnsorliteError)
    with Measurer(process_target(), MeasureSettings(builders=1, build_seconds=120.0)) as measurer:
        (measured,) = measurer.measure(task, [candidate])
    assert measured.outcome is Outcome.COMPILE_ERROR
    assert f"ProgramSizeError: {refused.value}" in measured.error


def test_parts_that_are_shared_count_once() -> None:
    task = chain(functions, 40, process_target())
    sketches = derive(task)
    for candidate in (default_candidate(task, sketches), NAIVE):
        compile_candidate(task, candidate)


def sums(kind: LoopKind, turned: bool) -> Function:
    """Of the rows of an array, in memory; the loop over what is added up stands inside, or outside if ``turned``."""
    x, y = argument("X", 8, 4), argument("Y", 8)

    def row(i: Var, k: Var) -> Stmt:
        return replace(store(y, (i,), load(y, i) + load(x, i, k)), role=Role.UPDATE)

    inside = loop("i", 8, lambda i: loop("k", 4, lambda k: row(i, k), kind))
    outside = loop("k", 4, lambda k: loop("i", 8, lambda i: row(i, k), kind))
    return Function("f", (x, y), 1, outside if turned else inside)


@pytest.mark.parametrize(
    ("kind", "turned", "promotes"),
    [
        (LoopKind.SERIAL, False, True),
        (LoopKind.SERIAL, True, False),  # the innermost loop moves on in each step
        (LoopKind.UNROLLED, False, False),
        (LoopKind.UNROLLED, True, True),  # eight elements, in each step of the loop over the columns
    ],
)
def test_all_of_llvm_is_for_loops_that_add_in_place(kind: LoopKind, turned: bool, promotes: bool) -> None:
    built = build(sums(kind, turned), process_target())
    assert isinstance(built, Object)
    assert built.promotes is promotes
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.ones(8, np.float32)
    run_compiled(built, sums(kind, turned), process_target(), x, y)
    np.testing.assert_array_equal(y, 1 + x.sum(axis=1))


def test_a_large_program_is_not_given_to_all_of_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_PROMOTED", 10)
    built = build(sums(LoopKind.SERIAL, turned=False), process_target())
    assert isinstance(built, Object)
    assert not built.promotes
