"""The four contracts on sums of products whose factors are converted once, into copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from ansorlite import te
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from tests import workloads
from tests.contracts import test_canonical_key, test_fast_features, test_right_numbers, test_total_decode
from tests.contracts.cases import constant_weights, times
from tests.targets import NARROW, WIDE


def scaled_weights() -> list[te.Tensor]:
    """Bytes by a factor for each column, and a name that a copy might have been given."""
    a, b = te.placeholder((33, 5), "float16", name="C_a"), te.placeholder((5, 35), "int8", name="B")
    scales, k = te.placeholder((35,), name="scales"), te.reduce_axis(5, name="k")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(te.cast(a[i, k], "float32") * (te.cast(b[k, j], "float32") * scales[j]), axis=k)

    return [a, b, scales, te.compute((33, 35), element, name="C")]


def square() -> list[te.Tensor]:
    a, k = te.placeholder((33, 6), "float16", name="A"), te.reduce_axis(6, name="k")
    body = lambda i, j: te.sum(te.cast(a[i, k], "float32") * te.cast(a[j, k], "float32"), axis=k)  # noqa: E731
    return [a, te.compute((33, 33), body, name="C")]


def rounded() -> list[te.Tensor]:
    a, b, c = workloads.widened_matmul(34, 33, 4, "float16")
    return [a, b, te.compute((34, 33), lambda i, j: te.cast(c[i, j], "float16"), name="D")]


NAMED: Final[Mapping[str, Callable[[], list[te.Tensor]]]] = {
    "product of float16": lambda: workloads.widened_matmul(33, 35, 6, "float16"),
    "product of bfloat16, one of them few rows": lambda: workloads.widened_matmul(3, 40, 7),
    "product, constant": lambda: constant_weights(workloads.widened_matmul(33, 34, 5, "float16"), "B"),
    "product, scaled bytes": scaled_weights,
    "product, rounded": rounded,
    "square": square,
    "convolution": lambda: workloads.widened_conv2d(2, 6, 6, 3),
}


@pytest.mark.parametrize(("name", "target"), [*((name, WIDE) for name in NAMED), ("product of float16", NARROW)])
def test_named_computations(name: str, target: Target) -> None:
    dag = ComputeDAG.of(NAMED[name]())
    assert any("s.convert(" in sketch.text for sketch in derive(Task(dag, target)))
    test_total_decode.check(dag, target, times(2), seed=1)
    test_canonical_key.collisions(dag, target, times(2), seed=2)
    test_fast_features.check(dag, target, times(2), seed=3)
    test_right_numbers.check(dag, target, times(1), times(1), seed=4)
