"""Axes read by quotient and remainder: the divided computation, and that it means the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.analysis.access import accesses
from ansorlite.analysis.predicates import has_data_reuse
from ansorlite.loops.interpreter import interpret
from ansorlite.rewrites.divide import divide, divisible_axes
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.topi.conv import conv, conv_transpose
from tests import workloads
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE

from .test_stages import lines, same_meaning

some = settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def divided(dag: ComputeDAG) -> ComputeDAG:
    """All that can be divided, divided."""
    while (division := next(divisible_axes(dag), None)) is not None:
        dag = divide(dag, division)
    return dag


def runs_right(dag: ComputeDAG, seed: int) -> None:
    """One row of each sketch computes what the expressions say."""
    rng = np.random.default_rng(seed)
    inputs = arrays_for(dag, rng)
    expected = evaluate(dag, inputs)
    for sketch in derive(Task(dag, WIDE)):
        (row,) = TileSpace(sketch).sample(1, rng)
        outputs = [np.zeros(t.shape, dtypes.NUMPY[t.dtype]) for t in dag.outputs]
        interpret(sketch.lower(row), [*inputs, *outputs], reorder=rng)
        assert_close(dag, outputs, expected)


def test_groups_of_a_convolution_and_all_after_it_become_a_dimension() -> None:
    before = ComputeDAG.of(workloads.conv2d_bias_relu(1, 4, 5, 5, 6, kernel=3, groups=2))
    after = divided(before)
    _, total, out, _ = lines(after)
    assert total.startswith("conv[b, o_div, o_mod, y, z] = sum(padded[b, o_div * 2 + rc, y + ry, z + rx] * ")
    assert out.startswith("out[b, o_div, o_mod, y, z] = max(conv[b, o_div, o_mod, y, z] + bias[o_div * 3 + o_mod], 0.0)")
    same_meaning(before, after)


def test_every_region_of_a_grouped_convolution_moves_with_its_tile() -> None:
    after = divided(ComputeDAG.of(workloads.conv2d(1, 8, 7, 7, 16, groups=4)))
    (conv_,) = (t for t in after.computes if has_data_reuse(t))
    assert all(term in conv_.axes + conv_.reduce_axes for a in accesses(conv_) for f in a.dims if f for term, _ in f.terms)


def test_an_output_that_does_not_divide_is_copied() -> None:
    x, w = te.placeholder((3, 4), name="X"), te.placeholder((4, 7, 5), name="W")
    k = te.reduce_axis(4, name="k")
    grouped = te.compute((7, 5), lambda i, j: te.sum(x[i // 3, k] * w[k, i, j], axis=k), name="C")
    before = ComputeDAG.of([x, w, grouped])
    total, copy, _ = lines(divided(before))
    assert total == (
        "C[i_div, i_mod, j] = sum(if_then_else(x0 < 7, X[i_div, k] * W[k, x0, j], 0.0), k in 0..4) where x0 = i_div * 3 + i_mod"
        " for i_div in 0..3, i_mod in 0..3, j in 0..5"
    )
    assert copy == "C_whole[i, j] = C[i // 3, i % 3, j] for i in 0..7, j in 0..5"
    same_meaning(before, divided(before))


@pytest.mark.parametrize("extent", [12, 11])
def test_a_reduce_axis_is_divided_in_its_stage(extent: int) -> None:
    x, w = te.placeholder((5, 4), name="X"), te.placeholder((extent, 6), name="W")
    k = te.reduce_axis(extent, name="k")
    element = te.compute((5, 6), lambda i, j: te.sum(x[i, k // 3] * w[k, j], axis=k), name="C")
    before = ComputeDAG.of([x, w, element])
    after = divided(before)
    assert [axis.extent for axis in after.computes[0].reduce_axes] == [4, 3]
    same_meaning(before, after)


def test_what_is_read_by_other_quotients_is_left() -> None:
    x, w = te.placeholder((4, 4), name="X"), te.placeholder((4, 6), name="W")
    k = te.reduce_axis(4, name="k")
    both = te.compute((4, 6), lambda i, j: te.sum(x[(i + k) // 2, k] * w[k, j], axis=k), name="C")
    dag = ComputeDAG.of([x, w, both])
    assert divided(dag) is dag


@some
@given(*(st.integers(1, 3),) * 4, st.integers(1, 2), st.booleans(), st.integers(0, 99))
def test_grouped_convolutions(groups: int, depth: int, share: int, kernel: int, rank: int, relu: bool, seed: int) -> None:
    x = te.placeholder((1, groups * depth, *(5, 4)[:rank]), name="X")
    w = te.placeholder((groups * share, depth, *(kernel,) * rank), name="W")
    out = conv(x, w, groups=groups, before=(1,) * rank, after=(1,) * rank)
    if relu:
        total = out
        out = te.compute(total.shape, lambda *i: te.maximum(total[i], 0.0), name="relu")
    dag = ComputeDAG.of([x, w, out])
    same_meaning(dag, divided(dag))
    runs_right(dag, seed)


@some
@given(st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3), "rank")
    kernel, strides, dilations = (
        tuple(data.draw(st.integers(1, most), name) for _ in range(rank))
        for name, most in (("kernel", 4 if rank < 3 else 2), ("stride", 3), ("dilation", 2))
    )
    pads = tuple(data.draw(st.integers(0, (k - 1) * d), "pad") for k, d in zip(kernel, dilations, strict=True))
    extra = tuple(data.draw(st.integers(0, s - 1), "output padding") for s in strides)
    groups = data.draw(st.integers(1, 2), "groups")
    x, w = te.placeholder((1, 2 * groups, *(4, 3, 2)[:rank]), name="X"), te.placeholder((2 * groups, 2, *kernel), name="W")
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [(e - 1) * s + n - 2 * p + o for e, s, n, p, o in zip(x.shape[2:], strides, spans, pads, extra, strict=True)]
    if min(sizes) < 1:
        return
    out = conv_transpose(x, w, strides=strides, before=pads, after=pads, dilations=dilations, groups=groups, output_padding=extra)
    dag = ComputeDAG.of([x, w, out])
    same_meaning(dag, divided(dag))
    runs_right(dag, data.draw(st.integers(0, 99), "seed"))


def test_steps_past_the_end_read_zeros_of_their_producer() -> None:
    x, w = te.placeholder((1, 2, 4), name="X"), te.placeholder((2, 3, 3), name="W")
    before = ComputeDAG.of([x, w, conv_transpose(x, w, strides=(2,), before=(1,), after=(1,))])
    padded, total, _, _ = lines(divided(before))
    assert before.computes[0].shape == (1, 2, 5)
    assert padded.endswith("i2 in 0..6")
    assert "< 7" not in total
    same_meaning(before, divided(before))


def test_steps_past_the_end_are_guarded_where_an_input_ends() -> None:
    x, w = te.placeholder((7, 4), name="X"), te.placeholder((4, 5), name="W")
    k = te.reduce_axis(4, name="k")
    total = te.compute((7, 5), lambda i, j: te.sum(x[i, k] * w[(k + i // 3) % 4, j], axis=k), name="C")
    before = ComputeDAG.of([x, w, total])
    after = divided(before)
    assert "i_div * 3 + i_mod < 7" in lines(after)[0] or "x0 < 7" in lines(after)[0]
    same_meaning(before, after)
    runs_right(before, 3)
