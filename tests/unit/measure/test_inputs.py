"""Inputs are the same for the same seed, aligned, and in range where that matters."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.alignment import ALIGNMENT
from ansorlite.measure.inputs import make_inputs
from ansorlite.runtime.arguments import empty
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.evaluate import evaluate


def identity(dtype: str, n: int = 1000) -> Task:
    a = te.placeholder((n,), dtype=dtype, name="A")
    return Task([a, te.compute((n,), lambda i: a[i], name="B")])


@pytest.mark.parametrize("dtype", list(dtypes.NUMPY))
def test_every_dtype_has_inputs_that_vary_and_repeat(dtype: str) -> None:
    dag = identity(dtype).dag
    (array,) = make_inputs(dag, np.random.default_rng(1))
    assert array.dtype == dtypes.NUMPY[dtype]
    assert array.flags.c_contiguous
    assert array.ctypes.data % ALIGNMENT == 0
    assert len(np.unique(array.astype(np.float64))) > 1
    np.testing.assert_array_equal(array, make_inputs(dag, np.random.default_rng(1))[0])
    assert not np.array_equal(array, make_inputs(dag, np.random.default_rng(2))[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("positive", "low", "high"), [(False, -1.0, 1.0), (True, 0.5, 1.5)])
def test_floats_are_in_their_range(dtype: str, positive: bool, low: float, high: float) -> None:
    (array,) = make_inputs(identity(dtype).dag, np.random.default_rng(0), positive)
    wide = array.astype(np.float64)
    assert low <= wide.min() < low + 0.1
    assert high - 0.1 < wide.max() <= high


def test_indices_stay_within_what_they_index() -> None:
    table = te.placeholder((3, 100), name="table")
    index = te.placeholder((50,), dtype="int64", name="index")
    task = Task([table, index, te.compute((50, 100), lambda i, j: table[index[i], j], name="rows")])
    arrays = make_inputs(task.dag, np.random.default_rng(0))
    assert set(arrays[1]) == {0, 1, 2}
    evaluate(task.dag, arrays)


def test_indices_that_pass_through_another_tensor_stay_within_it_too() -> None:
    table = te.placeholder((3,), name="table")
    index = te.placeholder((50,), dtype="int32", name="index")
    copied = te.compute((50,), lambda i: index[i], name="copied")
    task = Task([table, index, te.compute((50,), lambda i: table[copied[i]], name="rows")])
    arrays = make_inputs(task.dag, np.random.default_rng(0))
    assert set(arrays[1]) == {0, 1, 2}
    evaluate(task.dag, arrays)


def test_nothing_is_divided_by_zero_or_shifted_out() -> None:
    a = te.placeholder((500,), dtype="int32", name="A")
    b = te.placeholder((500,), dtype="int32", name="B")
    c = te.placeholder((500,), dtype="int32", name="C")
    task = Task([a, b, c, te.compute((500,), lambda i: (a[i] // b[i]) << c[i], name="D")])
    left, divisor, shift = make_inputs(task.dag, np.random.default_rng(0))
    assert left.min() < 0
    assert divisor.min() >= 1
    assert shift.min() >= 0
    assert shift.max() < 31


def test_empty_arrays_of_every_rank_are_aligned() -> None:
    for shape in [(), (1,), (3, 5, 7)]:
        array = empty(shape, "float64")
        assert array.shape == shape
        assert array.ctypes.data % ALIGNMENT == 0
