"""Rings of copies for GPUs that copy in bulk: products by warpgroups, and how what is computed with one is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ansorlite.loops.nodes import Function
from ansorlite.loops.verifier import verify
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests.contracts.test_right_numbers import compiled, interpreted, poisoned
from tests.on_gpu import run
from tests.ptx_machine import Counts
from tests.strategies import arrays_for, assert_close

HOPPER: Final = resolve("h100")
_EMULATED: Final = resolve("emulated")
#: Units by the dtype of the factors.
_UNITS: Final[Mapping[str, str]] = {"float16": "wgmma.m64k16.f16", "bfloat16": "wgmma.m64k16.bf16", "int8": "wgmma.m64k32.s8"}


def multiplied(dag: ComputeDAG, dtype: str, stages: int, steps: int, groups: int = 1, target: Target = HOPPER) -> Function:
    """A product by warpgroups in a ring, in tiles of ``64 * groups`` rows and 32 columns."""
    s = Schedule(dag, target)
    factors = s.matrix_unit("C", _UNITS[dtype], layouts=("cores", "cores"))
    *lead, i, j, o, p = s.stage("C").loops
    rows, columns = s.split(i, (None, groups, 1, 4, 2, 8)), s.split(j, (None, 1, 4, 4, 2))
    pieces = s.split(o, (None, steps, 2))
    threads = (rows[1], columns[1], rows[3], rows[5], columns[3])
    s.reorder(*lead, rows[0], columns[0], pieces[0], *threads, *pieces[1:], p, rows[2], columns[2], rows[4], columns[4])
    for loop in (*lead, rows[0], columns[0]):
        s.bind(loop, "block")
    for loop in threads:
        s.bind(loop, "thread")
    s.vectorize(columns[4], lanes=2)
    s.unroll((rows[2], columns[2], rows[4], columns[4]))
    s.reverse_compute_at("D", columns[0])
    for factor in factors:
        s.compute_at(factor, pieces[0], scope="shared")
        s.vectorize(s.stage(factor).loops[-1], lanes=8)
    s.pipeline(pieces[0], stages)
    return lower(Task(dag, target), Candidate(str(s.trace)))


def check(dag: ComputeDAG, function: Function, rng: np.random.Generator, target: Target = HOPPER) -> list[Counts]:
    """That the interpreter, a CPU, and the machine for PTX compute what numpy does; what each kernel cost on the last."""
    verify(function)
    inputs = arrays_for(dag, rng)
    expected = evaluate(dag, inputs)
    assert_close(dag, interpreted(dag, function, inputs, rng), expected)
    made = compiled(dag, function, inputs, _EMULATED)
    assert made is not None
    assert_close(dag, made, expected)
    outputs = poisoned(dag)
    counts = run(function, [*inputs, *outputs], target)
    assert_close(dag, outputs, expected)
    return counts
