"""Which factors of a sum of products are worth a copy in the dtype that they are multiplied in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansorlite import te
from ansorlite.analysis.conversion import conversions
from ansorlite.te.dag import ComputeDAG
from tests import workloads


def last(tensors: list[te.Tensor]) -> te.Tensor:
    return ComputeDAG.of(tensors).outputs[-1]


def converted(tensor: te.Tensor) -> list[str]:
    return [found.read.tensor.name for found in conversions(tensor)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_factors_that_are_used_often(dtype: str) -> None:
    assert converted(last(workloads.widened_matmul(32, 32, 4, dtype))) == ["A", "B"]
    assert converted(last(workloads.widened_matmul(8, 32, 4, dtype))) == ["A"]
    assert converted(last(workloads.widened_matmul(32, 8, 4, dtype))) == ["B"]
    assert converted(last(workloads.widened_matmul(1, 8, 4, dtype))) == []


def test_sums_that_are_made_in_the_dtype_of_the_factors() -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        assert converted(last(workloads.matmul(64, 64, 8, dtype))) == []
    assert converted(last(workloads.widened_matmul(64, 64, 8, "int32"))) == []
    assert converted(last(workloads.quantised_matmul(64, 64, 8))) == []


def test_functions_of_one_element() -> None:
    a, b = te.placeholder((64, 8), "float16", name="A"), te.placeholder((8, 64), "int8", name="B")
    scales = te.placeholder((64,), name="scales")
    k = te.reduce_axis(8, name="k")

    def of(scale: Callable[[te.Expr, te.Expr], te.Expr]) -> list[str]:
        def element(i: te.Expr, j: te.Expr) -> te.Expr:
            return te.sum(te.cast(a[i, k], "float32") * (te.cast(b[k, j], "float32") * scale(i, j)), axis=k)

        return converted(te.compute((64, 64), element, name="C"))

    assert of(lambda _, j: scales[j]) == ["A", "B"]
    # Not of where B's element is alone.
    assert of(lambda i, _: scales[i]) == ["A"]
