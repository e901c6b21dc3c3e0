"""Programs that unroll a long body far are refused, wherever they are compiled; what is long but shared is not.

They are of a machine that this processor is: the tuner runs, too.
"""

from __future__ import annotations

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.codegen import compile as compiling
from ansorlite.errors import AnsorliteError, ProgramSizeError
from ansorlite.measure import Measurer, MeasureSettings
from ansorlite.programs.build import compile_candidate
from ansorlite.records import Outcome
from ansorlite.search import default_candidate
from ansorlite.sketch.candidate import NAIVE, Candidate
from ansorlite.spaces import derive
from ansorlite.target import process_target
from tests.workloads import matmul


def long_body(links: int) -> al.Task:
    """Each link of the chain uses the one before three times: as a tree it would have 3**links parts."""
    x = te.placeholder((512, 512), name="x")

    def body(i: te.Expr, j: te.Expr) -> te.Expr:
        value = x[i, j]
        for _ in range(links):
            value = te.power(te.tanh(value) * te.exp(value), 1.5) + te.log(te.sqrt(value) + 1.0)
        return value

    return al.Task([x, te.compute((512, 512), body, name="o")], target=process_target())


def unrolled(task: al.Task) -> Candidate:
    """The program of ``task`` that unrolls its largest tile of no more than 512 elements, one by one."""
    (sketch,) = derive(task)
    tiles, *others = sketch.holes
    assert tiles.table is not None
    spans = tiles.table.spans[:, -2]
    largest = int(np.argmax(np.where(spans <= 512, spans, 0)))
    return sketch.candidate((largest, *(0 for _ in others[:-1]), others[-1].size - 1))


def test_a_program_of_too_many_instructions_is_refused_wherever_it_is_compiled() -> None:
    task = long_body(3)
    candidate = unrolled(task)
    with pytest.raises(ProgramSizeError, match="unrolls to more than 30000 instructions in one function") as refused:
        compile_candidate(task, candidate)
    assert isinstance(refused.value, AnsorliteError)
    with Measurer(process_target(), MeasureSettings(builders=1, build_seconds=120.0)) as measurer:
        (measured,) = measurer.measure(task, [candidate])
    assert measured.outcome is Outcome.COMPILE_ERROR
    assert f"ProgramSizeError: {refused.value}" in measured.error


def test_parts_that_are_shared_count_once() -> None:
    task = long_body(40)
    sketches = derive(task)
    for candidate in (default_candidate(task, sketches), NAIVE):
        compile_candidate(task, candidate)


def test_a_large_program_is_not_given_to_all_of_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    task = al.Task(matmul(8, 8, 8), target=process_target())
    in_memory = Candidate('def schedule(s):\n    C = s.stage("C")\n    s.reorder(C["k"], C["i"], C["j"])')
    assert compile_candidate(task, in_memory).compiled.promotes
    assert not compile_candidate(task, NAIVE).compiled.promotes, "its sums are in registers already"
    monkeypatch.setattr(compiling, "_PROMOTED", 10)
    assert not compile_candidate(task, in_memory).compiled.promotes
