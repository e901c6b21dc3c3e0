"""Conditions that differ from lane to lane."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.loops.nodes import Function
from ansorlite.platforms import build
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.task import Task
from tests.running import called
from tests.targets import WIDE

TRACE = 'def schedule(s):\n    B = s.stage("B")\n    s.vectorize(B["i"], lanes=16)'


def padded(n: int, stride: int = 1) -> list[te.Tensor]:
    """A row with an element before it and one behind it."""
    a = te.placeholder((n,), name="A")
    inside = -(-n // stride)

    def element(i: te.Expr) -> te.Expr:
        at = i * stride - 1
        return te.if_then_else(te.all(at >= 0, at < n), a[at], 0.0)

    return [a, te.compute((inside + 1,), element, name="B")]


def program(tensors: list[te.Tensor]) -> Function:
    return lower(Task(tensors, WIDE), Candidate(TRACE))


@pytest.mark.parametrize(("n", "stride", "element"), [(1000, 1, "i32"), (1000, 3, "i32"), (2**34, 2**28, "i64")])
def test_short_indices_are_compared_as_words(n: int, stride: int, element: str) -> None:
    """Of which a register holds twice as many."""
    code = str(build(program(padded(n, stride)), WIDE).llvm)
    compared = [line for line in code.splitlines() if "icmp" in line and "x i" in line]
    assert compared
    assert all(f"x {element}>" in line for line in compared)


@pytest.mark.parametrize("stride", [1, 3])
def test_they_say_the_same(stride: int) -> None:
    a = np.random.default_rng(0).random(1000, dtype=np.float32)
    found = called(program(padded(1000, stride)), WIDE, a)
    places = np.arange(len(found)) * stride - 1
    inside = (places >= 0) & (places < 1000)
    np.testing.assert_array_equal(found, np.where(inside, a[np.where(inside, places, 0)], 0))
