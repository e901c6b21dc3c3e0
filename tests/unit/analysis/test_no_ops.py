"""Which steps of a reduction change nothing, as far as its conditions say."""

from __future__ import annotations

import itertools

import pytest

from ansorlite import te
from ansorlite.analysis.no_ops import needed
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.expr import Reduce
from ansorlite.te.index.form import Affine
from tests import workloads


def reduction(tensors: list[te.Tensor]) -> te.Tensor:
    (found,) = [tensor for tensor in ComputeDAG.of(tensors).computes if isinstance(tensor.body, Reduce)]
    return found


def values(form: Affine, at: dict[str, int]) -> int:
    return form.constant + sum(coefficient * at[axis.name] for axis, coefficient in form.terms)


@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 3, 4)])
def test_taps_of_a_convolution_that_meet_padding(stride: int, dilation: int, pad: int) -> None:
    conv = reduction(workloads.conv2d(1, 2, 9, 9, 4, 3, stride, pad, dilation))
    forms = needed(conv)
    assert len(forms) == 4
    extents = {axis.name: axis.extent for axis in (*conv.axes, *conv.reduce_axes)}
    for y, z, ry, rx in itertools.product(*(range(extents[name]) for name in ("y", "z", "ry", "rx"))):
        inside = all(0 <= here * stride + tap * dilation - pad < 9 for here, tap in ((y, ry), (z, rx)))
        assert all(values(form, {"y": y, "z": z, "ry": ry, "rx": rx}) >= 0 for form in forms) == inside


def test_what_is_compared_with_nothing_in_a_maximum() -> None:
    assert len(needed(reduction(workloads.max_pool()))) == 4


def sums_where(otherwise: float, *, scaled: bool = True) -> te.Tensor:
    x, k = te.placeholder((8,), name="X"), te.reduce_axis(3, name="k")

    def term(i: te.Expr) -> te.Expr:
        chosen = te.if_then_else(i + k > 0, x[te.maximum(i + k - 1, 0)], otherwise)
        return chosen * 2.0 if scaled else chosen + 2.0

    return te.compute((8,), lambda i: te.sum(term(i), axis=k), name="S")


def test_only_zeros_that_are_multiplied_or_added_are_nothing_to_a_sum() -> None:
    (form,) = needed(sums_where(0.0))
    assert [values(form, {"i": i, "k": k}) for i, k in ((0, 0), (0, 1), (2, 0))] == [-1, 0, 1]
    assert needed(sums_where(1.0)) == ()
    assert needed(sums_where(0.0, scaled=False)) == ()


def test_conditions_of_elements_and_other_stages_are_none_of_steps() -> None:
    x, k = te.placeholder((8,), name="X"), te.reduce_axis(3, name="k")
    outer = te.compute((8,), lambda i: te.sum(te.if_then_else(i > 2, x[i] + k, 0.0), axis=k), name="S")
    assert needed(outer) == ()
    assert needed(te.compute((8,), lambda i: te.if_then_else(i > 2, x[i], 0.0), name="E")) == ()
