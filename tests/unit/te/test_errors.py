"""What is refused, at the line that made it, and with what sentence."""

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ExpressionError
from ansorlite.te.dag import ComputeDAG

A = te.placeholder((4, 8), name="A")
V = te.placeholder((4,), name="V")
INTS = te.placeholder((4,), "int32", name="N")


def refused(message):
    return pytest.raises(ExpressionError, match=message)


def test_rank():
    with refused(r"A has 2 dimensions \(4, 8\) but is read with 1 indices"):
        te.compute((4,), lambda i: A[i])
    with refused("C has 2 dimensions but its function takes 1 axes"):
        te.compute((4, 4), lambda i: V[i], name="C")


def test_shapes_and_dtypes():
    with refused("every extent must be at least 1"):
        te.placeholder((4, 0))
    with refused("which is not an integer"):
        te.placeholder((4, 2.0))
    with refused("unknown dtype 'float8'"):
        te.placeholder((4,), "float8")
    for domain in ((1, 4), (0, 1, 4), (0, 0), 4.5, "k", None):
        with refused(r"must be \(0, extent\)"):
            te.reduce_axis(domain)
    with refused("the shape of placeholder has None, which is not an integer"):
        te.placeholder(None)
    with refused("unknown dtype <object"):
        te.placeholder((4,), object())
    assert te.reduce_axis(np.int64(4)).extent == 4


def test_a_tensor_is_no_sequence():
    with pytest.raises(TypeError, match="not iterable"):
        list(V)
    with refused("made of a list .* of tensors, not of Tensor"):
        ComputeDAG.of(te.compute((4,), lambda i: V[i]))
    with refused("made of a list .* of tensors, not of None"):
        ComputeDAG.of(None)


def test_indices_are_integers():
    with refused("index 0 of V is float32, not an integer"):
        te.compute((4,), lambda i: V[V[i]])


def test_axes():
    k = te.reduce_axis(4, name="k")
    with refused("C uses axis k, which is not one of its own; reduce over it"):
        te.compute((4,), lambda i: V[i] + V[k], name="C")
    other = te.compute((4,), lambda i: V[i])
    with refused("C uses axis i, which is not one of its own; it belongs to another compute"):
        te.compute((4,), lambda _: V[other.axes[0]], name="C")
    with refused("sum needs axis= one or several te.reduce_axis"):
        te.compute((4,), lambda i: te.sum(V[i], axis=i))
    for axis in ([], None):
        with refused("needs axis="):
            te.sum(V[0], axis=axis)
    with refused("the same axis twice"):
        te.sum(V[k], axis=[k, k])


def test_a_reduction_inside_an_expression():
    k = te.reduce_axis(8)
    with refused("C has a reduction inside an element-wise expression; give the reduction a te.compute of its own"):
        te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1.0, name="C")
    j = te.reduce_axis(4)
    with refused("a reduction inside"):
        te.compute((1,), lambda _: te.sum(te.sum(A[j, k], axis=k), axis=j))


def test_dtypes_that_do_not_mix():
    half, brain = te.placeholder((4,), "float16"), te.placeholder((4,), "bfloat16")
    flags = te.placeholder((4,), "bool")
    with refused("float16 and bfloat16 do not mix"):
        half[0] + brain[0]
    with refused("- is not defined on bool"):
        flags[0] - flags[1]
    with refused("& is not defined on float32"):
        V[0] & V[1]
    with refused("300 does not fit in uint8"):
        te.placeholder((4,), "uint8")[0] + 300
    with refused("the condition of if_then_else is float32, not bool"):
        te.if_then_else(V[0], 1.0, 2.0)
    with refused("sum of bool is not defined"):
        te.sum(flags[te.reduce_axis(4)], axis=te.reduce_axis(4))
    with refused("a condition is int32, not bool"):
        te.all(INTS[0])


def test_truth_values():
    with refused("has no truth value"):
        te.compute((4,), lambda i: V[i] if V[i] > 0.0 else 0.0)
    with refused("has no truth value"):
        te.compute((4,), lambda i: V[i] if 0 <= i < 3 else 0.0)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda _: 5, "in C, index 0 of V is 5 but its valid range is 0..3; guard the read with te.if_then_else"),
        (lambda _: -1, "is -1 but"),
        (lambda i: i + 1, r"spans 1\.\.4"),
        (lambda i: i * 2 - i * 3, r"spans -3\.\.0"),
        (lambda i: i // 2 * 3 + 1, r"spans 1\.\.4"),
        (lambda i: te.maximum(i, 4), "is 4 but"),
        (lambda i: te.if_then_else(i < 3, i, 9), r"spans 0\.\.9"),
        (lambda i: INTS[i + 1], r"index 0 of N spans 1\.\.4"),
    ],
)
def test_reads_out_of_range(index, message):
    with refused(message):
        te.compute((4,), lambda i: V[index(i)], name="C")


@pytest.mark.parametrize(
    "body",
    [
        lambda i: te.if_then_else(i < 3, V[i + 1], 0.0),
        lambda i: te.if_then_else(i < 3, V[INTS[i + 1]], 0.0),
        lambda i: V[(i + 1) % 4],
        lambda i: V[(i * i) % 4],
        lambda i: V[i - i],
        lambda i: V[INTS[i]],
        lambda i: V[(i + 1) // 2 * 2 - i + 1 - (i + 1) % 2],
    ],
)
def test_reads_that_are_guarded_or_in_range_or_depend_on_data(body):
    assert te.compute((4,), body).shape == (4,)


def test_a_guard_excuses_only_what_is_in_its_arms():
    with refused(r"spans 1\.\.4"):
        te.compute((4,), lambda i: te.if_then_else(V[i + 1] > 0.0, V[i], 0.0))
    with refused(r"spans 1\.\.4"):
        te.compute((4,), lambda i: te.if_then_else(i < 3, V[i + 1], 0.0) + V[i + 1])
