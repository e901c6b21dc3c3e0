"""Schedules by hand that use a matrix unit: one that is right, and what is told of those that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Intrinsic, statements
from ansorlite.loops.verifier import verify
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests.products import SMALL, WIDE, product
from tests.strategies import arrays_for, assert_close


def by_hand(unit: str = "mma.m16n8k16.f16", **choices: Any) -> Schedule:
    """A product of 64 x 32 x 32 by one block; what is chosen otherwise is named."""
    chosen: dict[str, Any] = {
        "layouts": ("cores", "cores") if unit.startswith("wgmma") else ("steps_last", "steps_first"),
        "rows": (None, 1, 1, 4, 2, 8) if unit.startswith("wgmma") else (None, 2, 2, 2, 8),
        "columns": (None, 1, 4, 4, 2),
        "pieces": (None, 1, 2),
        "follows": True,
        "threads": "thread",
        "at": None,
        "order": lambda threads: threads,
        **choices,
    }
    s = Schedule(product(64, 32, 32, "float16"), SMALL)
    a, b = s.matrix_unit("C", unit, layouts=chosen["layouts"])
    c = s.stage("C")
    i, j, o, p = c.loops
    rows, columns, pieces = (s.split(loop, chosen[name]) for loop, name in ((i, "rows"), (j, "columns"), (o, "pieces")))
    threads = chosen["order"]((rows[1], columns[1], *rows[3:-2], rows[-1], columns[3]))
    s.reorder(rows[0], columns[0], pieces[0], *threads, *pieces[1:], p, rows[2], columns[2], rows[-2], columns[4])
    for loop in (rows[0], columns[0]):
        s.bind(loop, "block")
    for loop in threads:
        s.bind(loop, chosen["threads"])
    s.vectorize(columns[4], lanes=2)
    s.unroll((rows[2], columns[2], rows[-2], columns[4]))
    if chosen["follows"]:
        s.reverse_compute_at("D", columns[0])
    for factor in (a, b):
        s.compute_at(factor, chosen["at"](rows) if chosen["at"] else pieces[0], scope="shared")
    return s


@pytest.mark.parametrize(("unit", "target"), [("mma.m16n8k16.f16", SMALL), ("wgmma.m64k16.f16", WIDE)])
def test_a_schedule_by_hand(unit: str, target: Any) -> None:
    task = Task(product(64, 32, 32, "float16"), target)
    function = lower(task, Candidate(str(by_hand(unit).trace)))
    verify(function)
    assert sum(isinstance(stmt, Intrinsic) for stmt in statements(function.body)) == 1
    inputs = arrays_for(task.dag, np.random.default_rng(0))
    output = np.full((64, 32), np.nan, np.float32)
    interpret(function, [*inputs, output], reorder=np.random.default_rng(1))
    assert_close(task.dag, [output], evaluate(task.dag, inputs))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: by_hand("mma.m8n8k4.f64"), "is to be multiplied by 'mma.m8n8k4.f64'; there are wgmma.m64k16.f16, "),
        (lambda: by_hand("mma.m16n8k32.s8"), "is no sum of products of int8, added up in int32"),
        (lambda: by_hand(layouts=("packed", "plain")), "are to lie as ('packed', 'plain'); there are steps_last, "),
        (lambda: by_hand(follows=False), "its sums are in registers; let another stage follow it"),
        (lambda: by_hand(rows=(None, 2, 4, 8, 2)), "the innermost loops over i0 must have 2, 8 iterations"),
        (lambda: by_hand(columns=(None, 2, 4, 2, 4)), "the innermost loops over i1 must have 4, 2 iterations"),
        (lambda: by_hand(pieces=(None, 2, 1)), "the innermost loops over piece must have 2 iterations"),
        (lambda: by_hand(order=lambda threads: threads[::-1]), "the innermost of the loops bound to thread must be"),
        (lambda: by_hand(threads="block"), "bound to block, but"),
        (lambda: by_hand("wgmma.m64k16.f16", columns=(None, 1, 1, 4, 2)), "which has 16, 32, 64, 128, 256 columns"),
        (lambda: by_hand(at=lambda rows: rows[2]), "is to be shared by the threads of a block"),
    ],
)
def test_what_cannot_be_says_why(make: Callable[[], Schedule], why: str) -> None:
    with pytest.raises(ScheduleError) as error:
        lower(Task(product(64, 32, 32, "float16"), SMALL), Candidate(str(make().trace)))
    assert why in str(error.value)
    assert "\n" not in str(error.value)
