"""Sums over data with zeros in between: no zero is multiplied, and the sums stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansorlite import te
from ansorlite.rewrites.polyphase import phases, take_phases
from ansorlite.rewrites.stages import without_unit_reductions
from ansorlite.te.dag import ComputeDAG
from tests import workloads

from .test_divide import divided, runs_right
from .test_stages import lines, same_meaning


def dense(dag: ComputeDAG) -> ComputeDAG:
    """All sums that can be taken by phases, taken."""
    while (found := next(phases(dag), None)) is not None:
        dag = take_phases(dag, found)
    return dag


def upsampled(
    extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], flipped: bool, guarded: bool
) -> list[te.Tensor]:
    """A transposed convolution of ``(ci, extents...)`` as its textbook definition: zeros between the data, then a window.

    ``flipped`` runs through the window backwards; ``guarded`` has the zeros in the sum itself.
    """
    x, w = te.placeholder((2, *extents), name="X"), te.placeholder((2, 3, *kernel), name="W")
    sizes = [(e - 1) * s + k - 2 * p for e, s, k, p in zip(extents, strides, kernel, pads, strict=True)]
    steps = [te.reduce_axis(k, name=f"r{d}") for d, k in enumerate(kernel)]
    rc = te.reduce_axis(2, name="rc")

    def between(c: te.Expr, *at: te.Expr) -> te.Expr:
        conditions = []
        for i, e, s in zip(at, extents, strides, strict=True):
            conditions += [i >= 0, i <= (e - 1) * s, i % s == 0]
        return te.if_then_else(te.all(*conditions), x[(c, *(i // s for i, s in zip(at, strides, strict=True)))], 0.0)

    edges = [k - 1 for k in kernel]
    shape = (2, *((e - 1) * s + 1 + 2 * edge for e, s, edge in zip(extents, strides, edges, strict=True)))
    zeros = te.compute(shape, lambda c, *at: between(c, *(i - e for i, e in zip(at, edges, strict=True))), name="zeros")

    def element(o: te.Expr, *at: te.Expr) -> te.Expr:
        taps = [k - 1 - r if flipped else r for r, k in zip(steps, kernel, strict=True)]
        # Output y meets the tap k at y + p - k of the data with zeros.
        moves = [y + p - (k - 1 - t) for y, p, k, t in zip(at, pads, kernel, taps, strict=True)]
        value = between(rc, *moves) if guarded else zeros[(rc, *(m + e for m, e in zip(moves, edges, strict=True)))]
        return te.sum(value * w[(rc, o, *(k - 1 - t for k, t in zip(kernel, taps, strict=True)))], axis=[rc, *steps])

    return [x, w, te.compute((3, *sizes), element, name="C")]


def test_the_definition_with_zeros_becomes_a_dense_one() -> None:
    before = ComputeDAG.of(workloads.conv2d_transposed(1, 3, 4, 4, 2, 4, 2, 1))
    after = dense(before)
    assert [axis.extent for axis in after.computes[1].reduce_axes] == [3, 2, 2]
    assert after.computes[0].shape == (1, 3, 6, 6)
    assert "%" not in lines(after)[0]
    same_meaning(before, after)
    same_meaning(before, divided(after))


def test_a_kernel_as_wide_as_the_stride_leaves_a_product() -> None:
    before = ComputeDAG.of(upsampled((5,), (3,), (3,), (0,), flipped=False, guarded=True))
    total, _ = lines(divided(without_unit_reductions(dense(before))))
    assert "* W[rc, i0, i1_mod]" in total
    assert "r0" not in total
    same_meaning(before, divided(dense(before)))


def test_guards_that_do_not_end_in_zero_are_left() -> None:
    a, w = te.placeholder((8,), name="A"), te.placeholder((4,), name="W")
    k = te.reduce_axis(4, name="k")
    ones = te.compute((8,), lambda i: te.if_then_else(i % 2 == 0, a[i // 2], 1.0), name="ones")
    dag = ComputeDAG.of([a, w, te.compute((5,), lambda y: te.sum(ones[y + k] * w[k], axis=k), name="C")])
    assert not list(phases(dag))
    largest = te.compute((5,), lambda y: te.max(te.if_then_else((y + k) % 2 == 0, a[y + k], 0.0), axis=k), name="C")
    assert not list(phases(ComputeDAG.of([a, largest])))


@pytest.mark.parametrize("extent", [3, 4])
def test_a_read_elsewhere_keeps_its_zeros(extent: int) -> None:
    a, w = te.placeholder((4,), name="A"), te.placeholder((extent,), name="W")
    k = te.reduce_axis(extent, name="k")
    zeros = te.compute((8,), lambda i: te.if_then_else(i % 2 == 0, a[i // 2], 0.0), name="zeros")
    total = te.compute((4,), lambda y: te.sum(zeros[y + k] * w[k] * zeros[7 - y - k], axis=k), name="C")
    before = ComputeDAG.of([a, w, zeros, total])
    after = dense(before)
    assert total.reduce_axes[0].extent > after.computes[-1].reduce_axes[0].extent
    same_meaning(before, after)


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_transposed_convolutions_as_written_in_textbooks(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3), "rank")
    kernel, strides = (
        tuple(data.draw(st.integers(1, most), name) for _ in range(rank)) for name, most in (("kernel", 6 - rank), ("stride", 3))
    )
    pads = tuple(data.draw(st.integers(0, k - 1), "pad") for k in kernel)
    extents = (4, 3, 2)[:rank]
    if any((e - 1) * s + k - 2 * p < 1 for e, s, k, p in zip(extents, strides, kernel, pads, strict=True)):
        return
    flags = data.draw(st.booleans(), "flipped"), data.draw(st.booleans(), "guarded")
    before = ComputeDAG.of(upsampled(extents, kernel, strides, pads, *flags))
    after = dense(before)
    steps = [axis.extent for axis in after.computes[-1].reduce_axes[1:]]
    assert steps == [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    same_meaning(before, divided(after))
    runs_right(before, data.draw(st.integers(0, 99), "seed"))
