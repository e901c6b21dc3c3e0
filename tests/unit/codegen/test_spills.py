"""What registers have no room for is kept on the stack, each vector in one cache line."""

import re

import pytest

from ansorlite.codegen import assembly
from ansorlite.platforms import build
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.target import resolve
from ansorlite.task import Task
from tests import workloads

#: Sums of 10 rows of 4 vectors.
TRACE = """def schedule(s):
    C = s.stage("C")
    i0, i1 = s.split(C["i"], (2, 10))
    j0, j1 = s.split(C["j"], (1, {columns}))
    s.reorder(i0, j0, C["k"], i1, j1)
    s.vectorize(j1, lanes={lanes})
    s.unroll((i1, j1), max_steps=64)"""


@pytest.mark.parametrize(("name", "register"), [("x86-64-v3", "ymm"), ("x86-64-v4", "zmm")])
def test_spilled_vectors_are_aligned(name: str, register: str) -> None:
    target = resolve(name)
    lanes = target.lanes("float32")
    task = Task(workloads.matmul(20, 4 * lanes, 64), target)
    sketch = sketch_of(task, Candidate(TRACE.format(columns=4 * lanes, lanes=lanes)))
    moves = re.findall(rf"(vmov\w+)\s+%{register}\d+, -?\d*\(%rsp\)", assembly(build(sketch.lower(()), target), target))
    assert moves
    assert set(moves) == {"vmovaps"}
