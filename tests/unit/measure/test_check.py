"""Rounding passes; anything else is found: a missing term, an element never written, a misplaced NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.measure.check import Checker, Tolerance, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.evaluate import evaluate

Array = np.ndarray[Any, Any]


def dot(n: int, dtype: str = "float32") -> Task:
    a = te.placeholder((8, n), dtype=dtype, name="A")
    b = te.placeholder((n,), dtype=dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    return Task([a, b, te.compute((8,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="C")])


def checker(references: list[Array], relative: float = 1e-5, jumping: float = 0.0) -> Checker:
    return Checker([f"out{i}" for i in range(len(references))], references, Tolerance(relative, jumping))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4000), st.integers(0, 1000))
def test_another_order_of_a_sum_passes_and_a_missing_term_does_not(n: int, seed: int) -> None:
    task = dot(n)
    a, b = make_inputs(task.dag, np.random.default_rng(seed))
    (reference,) = evaluate(task.dag, [a, b])
    judge = Checker(["C"], [reference], tolerance(task.dag))
    one_by_one = np.zeros(8, np.float32)
    for k in reversed(range(n)):
        one_by_one += a[:, k] * b[k]
    assert judge.compare([one_by_one]) == ""
    term = a[:, 0] * b[0]
    if np.abs(term).max() > 0.1:
        assert "of 8 elements of C are wrong" in judge.compare([one_by_one - term])


@pytest.mark.parametrize("dtype", list(dtypes.NUMPY))
def test_an_element_that_is_never_written_is_found(dtype: str) -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 2, (3, 4)).astype(dtypes.NUMPY[dtype])
    judge = checker([reference])
    output = np.empty_like(reference)
    judge.poison([output])
    assert "12 of 12 elements of out0 are wrong" in judge.compare([output])
    output[...] = reference
    assert judge.compare([output]) == ""
    judge.poison([output])
    output.flat[:5] = reference.flat[:5]
    output.flat[6:] = reference.flat[6:]
    assert "1 of 12 elements of out0 are wrong; the first, at (1, 1)" in judge.compare([output])


def test_nan_and_infinity_must_be_where_they_should_be() -> None:
    reference = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    judge = checker([reference])
    assert judge.compare([reference.copy()]) == ""
    for position in range(4):
        for wrong in (np.nan, np.inf, -np.inf, 2.0):
            output = reference.copy()
            output[position] = wrong
            if not np.array_equal(output, reference, equal_nan=True):
                assert f"the first, at ({position},)" in judge.compare([output])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_every_part_of_a_large_output_is_looked_at(dtype: str) -> None:
    reference = np.random.default_rng(0).normal(size=(7, 20_001)).astype(dtype)
    reference[3, 5] = np.inf
    judge = checker([reference], 1e-2)
    assert judge.compare([reference.copy()]) == ""
    for place in ((0, 0), (1, 12_767), (3, 5), (6, 20_000)):
        output = reference.copy()
        output[place] = output[place] + 0.5 if np.isfinite(output[place]) else 0.0
        assert f"1 of 140007 elements of out0 are wrong; the first, at {place}" in judge.compare([output])


def test_the_second_output_is_looked_at_too() -> None:
    judge = checker([np.zeros(3, np.float32), np.ones((), np.int32)])
    assert judge.compare([np.zeros(3, np.float32), np.ones((), np.int32)]) == ""
    assert "1 of 1 elements of out1 are wrong; the first, at (), is 2 and should be 1" in judge.compare(
        [np.zeros(3, np.float32), np.full((), 2, np.int32)]
    )


def test_a_result_near_zero_is_measured_by_the_size_of_the_others() -> None:
    reference = np.array([100.0, 0.0], np.float32)
    judge = checker([reference])
    assert judge.compare([np.array([100.0, 1e-4], np.float32)]) == ""
    assert "1 of 2" in judge.compare([np.array([100.0, 1e-2], np.float32)])


def test_where_results_jump_a_few_may_land_on_the_other_side() -> None:
    a = te.placeholder((10_000,), name="A")
    jumping = Task([a, te.compute((10_000,), lambda i: te.floor(a[i] * 3.0), name="B")])
    smooth = Task([a, te.compute((10_000,), lambda i: te.exp(a[i]), name="B")])
    assert tolerance(smooth.dag).jumping == 0.0
    reference = np.zeros(10_000, np.float32)
    judge = Checker(["B"], [reference], tolerance(jumping.dag))
    few, many = reference.copy(), reference.copy()
    few[:10], many[:11] = 1.0, 1.0
    assert judge.compare([few]) == ""
    assert "11 of 10000" in judge.compare([many])


def test_integers_are_exact_and_narrow_floats_get_what_they_need() -> None:
    assert tolerance(dot(64, "int32").dag) == Tolerance(0.0, 0.0)
    double, single, half = (tolerance(dot(64, dtype).dag).relative for dtype in ("float64", "float32", "float16"))
    assert double < single < half
    assert tolerance(dot(64).dag).relative < tolerance(dot(4096).dag).relative
