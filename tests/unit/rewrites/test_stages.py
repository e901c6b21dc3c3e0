"""Rewrites of a computation: what they print before and after, and that both mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite import te
from ansorlite.rewrites.stages import cache_write, fuse, fusible_axes, rfactor, without_unit_reductions
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.printer import text
from ansorlite.te.rewriting import inline, tensor_named, with_unique_names
from tests import workloads
from tests.strategies import arrays_for, assert_close


def same_meaning(before: ComputeDAG, after: ComputeDAG) -> None:
    """Both give the same outputs, whatever dimensions the second has merged."""
    arrays = arrays_for(before, np.random.default_rng(0))
    expected = evaluate(before, arrays)
    found = evaluate(after, [a.reshape(t.shape) for a, t in zip(arrays, after.inputs, strict=True)])
    assert_close(before, [f.reshape(e.shape) for f, e in zip(found, expected, strict=True)], expected)


def lines(dag: ComputeDAG) -> list[str]:
    """The computes and what is returned, without the inputs."""
    return text(dag).splitlines()[len(dag.inputs) :]


def test_inline() -> None:
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: a[i] + 1.0, name="B")
    before = ComputeDAG.of([a, te.compute((5,), lambda i: b[i] * 2.0, name="C")])
    after = inline(before, "B")
    assert lines(before) == ["B[i] = A[i] + 1.0 for i in 0..5", "C[i] = B[i] * 2.0 for i in 0..5", "return C"]
    assert lines(after) == ["C[i] = (A[i] + 1.0) * 2.0 for i in 0..5", "return C"]
    same_meaning(before, after)


def test_inline_moves_indices() -> None:
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[5 - i], name="B")
    before = ComputeDAG.of([a, te.compute((2, 3), lambda i, j: b[i * 3 + j] + b[0], name="C")])
    after = inline(before, "B")
    assert lines(after) == ["C[i, j] = A[5 - (i * 3 + j)] + A[5 - 0] for i in 0..2, j in 0..3", "return C"]
    same_meaning(before, after)


def test_cache_write() -> None:
    before = ComputeDAG.of(workloads.matmul_relu(3, 4, 5))
    after = cache_write(before, "C", "C_local")
    assert lines(after) == [
        "C_local[i, j] = sum(A[i, k] * B[k, j], k in 0..5) for i in 0..3, j in 0..4",
        "C[i, j] = C_local[i, j] for i in 0..3, j in 0..4",
        "D[i, j] = max(C[i, j], 0.0) for i in 0..3, j in 0..4",
        "return D",
    ]
    same_meaning(before, after)


def test_rfactor() -> None:
    before = ComputeDAG.of(workloads.matmul(2, 3, 8))
    after = rfactor(before, "C", tensor_named(before, "C").reduce_axes[0], "C_rf")
    partial, merge, _ = lines(after)
    assert partial == "C_rf[k_part, i, j] = sum(A[i, k] * B[k, j], k in 0..8) for k_part in 0..8, i in 0..2, j in 0..3"
    assert merge == "C[i, j] = sum(C_rf[k_part, i, j], k_part in 0..8) for i in 0..2, j in 0..3"
    # The parts are taken when loops are made: the text says each sums all of it.
    assert tensor_named(after, "C").shape == (2, 3)


def test_unit_reductions_vanish() -> None:
    before = ComputeDAG.of(workloads.conv2d(1, 3, 4, 4, 2, kernel=1, pad=0))
    after = without_unit_reductions(before)
    total = "sum(X[b, rc, y, z] * W[o, rc, 0, 0], rc in 0..3)"
    assert lines(after) == [f"conv[b, o, y, z] = {total} for b in 0..1, o in 0..2, y in 0..4, z in 0..4", "return conv"]
    same_meaning(before, after)


@pytest.mark.parametrize("fold", [te.sum, te.prod, te.max, te.min])
def test_a_reduction_of_one_element_is_that_element(fold: object) -> None:
    a = te.placeholder((4, 1), name="A")
    r = te.reduce_axis(1, name="r")
    before = ComputeDAG.of([a, te.compute((4,), lambda i: fold(a[i, r] * 2.0, axis=r), name="B")])
    after = without_unit_reductions(before)
    assert lines(after) == ["B[i] = A[i, 0] * 2.0 for i in 0..4", "return B"]
    same_meaning(before, after)


def test_dimensions_walked_in_step_become_one() -> None:
    a, bias = te.placeholder((2, 3, 4), name="A"), te.placeholder((2,), name="bias")
    before = ComputeDAG.of([a, bias, te.compute((2, 3, 4), lambda n, h, w: a[n, h, w] + bias[n], name="B")])
    after = fuse(before, fusible_axes(before))
    assert lines(after) == ["B[n, h_w] = A[n, h_w] + bias[n] for n in 0..2, h_w in 0..12", "return B"]
    same_meaning(before, after)


def test_dimensions_stay_apart_where_any_compute_needs_them() -> None:
    for tensors in (workloads.transpose_add(3, 4), workloads.softmax(3, 4), workloads.conv2d(2, 3, 5, 5, 2)):
        dag = ComputeDAG.of(tensors)
        assert not any(fusible_axes(dag).values())
    a = te.placeholder((3, 4), name="A")
    valued = ComputeDAG.of([a, te.compute((3, 4), lambda i, j: a[i, j] * te.cast(j, "float32"), name="B")])
    assert not any(fusible_axes(valued).values())
    part = ComputeDAG.of([a, te.compute((3, 2), lambda i, j: a[i, j] * 2.0, name="B")])
    assert not any(fusible_axes(part).values())


def test_fusing_a_convolution_of_one_by_one() -> None:
    before = without_unit_reductions(ComputeDAG.of(workloads.conv2d_bias_relu(2, 3, 4, 5, 6, kernel=1, pad=0)))
    after = fuse(before, fusible_axes(before))
    assert [t.shape for t in (*after.inputs, *after.outputs)] == [(2, 3, 20), (6, 3, 1, 1), (6,), (2, 6, 20)]
    same_meaning(before, after)


def test_names_become_unique_identifiers() -> None:
    a = te.placeholder((3,), name="x/y:0")
    b = te.compute((3,), lambda i: a[i] + 1.0, name="t")
    c = te.compute((3,), lambda i: b[i] * 2.0, name="t")
    before = ComputeDAG.of([a, c])
    after = with_unique_names(before)
    assert [t.name for t in after.tensors] == ["x_y_0", "t", "t_2"]
    same_meaning(before, after)
