"""Each question that the derivation rules ask, on computations where the answer is known."""

from __future__ import annotations

import pytest

from ansorlite import te
from ansorlite.analysis.access import Access, accesses, lane_axis
from ansorlite.analysis.predicates import (
    fusible_consumer,
    has_data_reuse,
    has_more_reduction_parallelism,
    is_expensive,
    is_simple,
    is_strictly_inlinable,
    packable,
    reads_each_once,
    reused_over,
)
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.tensor import Tensor
from tests import workloads


def dag_of(tensors: list[te.Tensor]) -> ComputeDAG:
    return ComputeDAG.of(tensors)


def named(dag: ComputeDAG, name: str) -> Tensor:
    return next(t for t in dag.tensors if t.name == name)


def chain(make: str) -> tuple[ComputeDAG, Tensor]:
    """``B`` between an input ``A`` of (4, 6) and an output ``C``."""
    a = te.placeholder((4, 6), name="A")
    bodies = {
        "plain": lambda i, j: a[i, j] + 1.0,
        "expensive": lambda i, j: te.exp(a[i, j]),
        "shifted": lambda i, j: a[i, (j + 1) % 6],
        "branching": lambda i, j: te.if_then_else(j >= 1, a[i, j], 0.0),
    }
    b = te.compute((4, 6), bodies[make], name="B")
    return dag_of([a, te.compute((4, 6), lambda i, j: b[i, j] * 2.0, name="C")]), b


@pytest.mark.parametrize(("make", "answer"), [("plain", True), ("expensive", True), ("shifted", False), ("branching", True)])
def test_strictly_inlinable(make: str, answer: bool) -> None:
    dag, b = chain(make)
    assert is_strictly_inlinable(dag, b) is answer


def test_not_strictly_inlinable_if_it_is_an_output_an_input_or_a_reduction() -> None:
    two = dag_of(workloads.two_outputs(4, 4, 4))
    assert not is_strictly_inlinable(two, named(two, "D"))
    assert not is_strictly_inlinable(two, named(two, "C"))
    assert not is_strictly_inlinable(two, named(two, "A"))


def test_expensive_stage_is_inlined_only_where_nothing_is_computed_twice() -> None:
    dag = dag_of(workloads.softmax(4, 6))
    assert not is_strictly_inlinable(dag, named(dag, "exp"))  # read by a sum and by the quotient
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: te.exp(a[i]), name="B")
    broadcast = dag_of([a, te.compute((4, 6), lambda i, j: b[j] + te.cast(i, "float32"), name="C")])
    assert not is_strictly_inlinable(broadcast, b)


def test_branching_stage_is_inlined_only_where_nothing_is_computed_twice() -> None:
    dag = dag_of(workloads.conv2d(1, 2, 5, 5, 2))
    assert not is_strictly_inlinable(dag, named(dag, "padded"))


def test_expensive() -> None:
    dag = dag_of(workloads.softmax(4, 6))
    assert is_expensive(named(dag, "exp"))
    assert not is_expensive(named(dag, "softmax"))
    assert not is_expensive(named(dag, "X"))


def test_reads_each_once() -> None:
    dag = dag_of(workloads.matmul_bias_relu(4, 6, 5))
    assert reads_each_once(named(dag, "D"), named(dag, "C"))
    assert not reads_each_once(named(dag, "C"), named(dag, "A"))  # once for every column of B
    transposed = dag_of(workloads.transpose_add(4, 6))
    assert reads_each_once(named(transposed, "C"), named(transposed, "B"))


def _conv_scale_shift() -> list[te.Tensor]:
    """A convolution with what is left of a batch normalisation."""
    *inputs, conv = workloads.conv2d(1, 2, 5, 5, 3)
    scale, shift = te.placeholder((3,), name="scale"), te.placeholder((3,), name="shift")
    scaled = te.compute(conv.shape, lambda n, c, y, x: conv[n, c, y, x] * scale[c] + shift[c], name="D")
    return [*inputs, scale, shift, scaled]


def _place_of_the_largest() -> list[te.Tensor]:
    """Where each row has its largest element."""
    x = te.placeholder((4, 6), name="X")
    k, r = te.reduce_axis(6, name="k"), te.reduce_axis(6, name="r")
    largest = te.compute((4,), lambda i: te.max(x[i, k], axis=k), name="largest")
    place = te.compute((4,), lambda i: te.min(te.if_then_else(x[i, r] == largest[i], r, 6), axis=r), name="place")
    return [x, place]


@pytest.mark.parametrize(
    ("tensors", "stage", "answer"),
    [
        (workloads.matmul(4, 6, 5), "C", True),
        (workloads.matmul(1, 6, 5), "C", True),
        (workloads.matmul(1, 1, 5), "C", False),  # every element is read once
        (workloads.conv2d(1, 2, 5, 5, 2), "conv", True),
        (workloads.depthwise(1, 2, 5, 5), "depthwise", True),
        (workloads.softmax(4, 6), "total", False),
        (workloads.softmax(4, 6), "softmax", False),
        (workloads.sum_of_squares(9), "squares", False),
        (workloads.transpose_add(4, 6), "C", False),
        (_place_of_the_largest(), "place", False),  # only the reduce axis is missed
        (_conv_scale_shift(), "conv", True),
        (_conv_scale_shift(), "D", False),  # two reads miss axes, but nothing is summed
    ],
)
def test_data_reuse(tensors: list[te.Tensor], stage: str, answer: bool) -> None:
    assert has_data_reuse(named(dag_of(tensors), stage)) is answer


def test_fusible_consumer() -> None:
    dag = dag_of(workloads.matmul_bias_relu(4, 6, 5))
    assert fusible_consumer(dag, named(dag, "C")) is named(dag, "D")
    assert fusible_consumer(dag, named(dag, "E")) is None  # nobody reads it


def test_no_fusible_consumer() -> None:
    two, twice = dag_of(workloads.two_outputs(4, 4, 4)), dag_of(workloads.diamond(4, 4, 4))
    assert fusible_consumer(two, named(two, "C")) is None  # an output
    assert fusible_consumer(twice, named(twice, "C")) is None  # two consumers
    a, b, c = workloads.matmul(4, 4, 5)
    turned = dag_of([a, b, te.compute((4, 4), lambda i, j: c[j, i] + 1.0, name="D")])
    assert fusible_consumer(turned, c) is None
    r = te.reduce_axis(4, name="r")
    summed = dag_of([a, b, te.compute((4,), lambda i: te.sum(c[i, r], axis=r), name="D")])
    assert fusible_consumer(summed, c) is None
    longer = dag_of([a, b, te.compute((5, 4), lambda i, j: te.if_then_else(i < 4, c[i, j], 0.0), name="D")])
    assert fusible_consumer(longer, c) is None


@pytest.mark.parametrize(
    ("tensors", "stage", "threads", "answer"),
    [
        (workloads.sum_of_squares(1000), "squares", 2, True),
        (workloads.sum_of_squares(2), "squares", 2, False),
        (workloads.matmul(4, 4, 512), "C", 2, True),
        (workloads.matmul(64, 64, 512), "C", 2, False),
        (workloads.matmul(64, 64, 5000), "C", 256, True),
        (workloads.softmax(512, 64), "total", 2, False),
        (workloads.transpose_add(4, 6), "C", 2, False),
    ],
)
def test_reduction_parallelism(tensors: list[te.Tensor], stage: str, threads: int, answer: bool) -> None:
    assert has_more_reduction_parallelism(named(dag_of(tensors), stage), threads) is answer


def read_of(stage: Tensor, tensor: str) -> Access:
    return next(access for access in accesses(stage) if access.tensor.name == tensor)


def test_simple_and_packable_reads() -> None:
    c = named(dag_of(workloads.matmul(4, 6, 5)), "C")
    conv = named(dag_of(workloads.conv2d(1, 2, 5, 5, 2)), "conv")
    assert is_simple(read_of(c, "A"))
    assert packable(read_of(c, "A"))
    assert packable(read_of(conv, "W"))
    assert not packable(read_of(conv, "padded"))  # y + ry
    a = te.placeholder((4, 4), name="A")
    row = te.compute((4, 4), lambda i, j: a[0, j] + te.cast(i, "float32"), name="B")
    diagonal = te.compute((4,), lambda i: a[i, i], name="D")
    assert is_simple(read_of(row, "A"))
    assert packable(read_of(row, "A"))  # one row of it
    taps = te.compute((3, 2, 2), lambda i, r, j: a[i, j * 2 + (r + 1) % 2], name="T")
    assert packable(read_of(taps, "A"))
    guarded = te.compute((4, 4), lambda i, j: te.if_then_else(j < 3, a[i, j + 1], 0.0), name="G")
    assert not packable(read_of(guarded, "A"))
    assert not is_simple(read_of(diagonal, "A"))


def test_reused_over() -> None:
    c = named(dag_of(workloads.matmul(4, 6, 5)), "C")
    assert [axis.name for axis in reused_over(c, read_of(c, "A"))] == ["j"]
    assert [axis.name for axis in reused_over(c, read_of(c, "B"))] == ["i"]


@pytest.mark.parametrize(
    ("tensors", "stage", "axis"),
    [
        (workloads.matmul(4, 6, 5), "C", "j"),
        (workloads.softmax(4, 6), "total", "s"),
        (workloads.softmax(4, 6), "softmax", "j"),
        (workloads.conv2d(1, 2, 5, 5, 2), "conv", "z"),
        (workloads.sum_of_squares(9), "squares", "r"),
        (workloads.matmul(1, 1, 1), "C", None),
    ],
)
def test_lane_axis(tensors: list[te.Tensor], stage: str, axis: str | None) -> None:
    found = lane_axis(named(dag_of(tensors), stage))
    assert (found.name if found is not None else None) == axis


def test_lanes_lie_where_most_elements_do() -> None:
    """The sum of squares of a layer norm reads a mean for each row, but every element of the row."""
    x, mean = te.placeholder((8, 16), name="X"), te.placeholder((8,), name="mean")
    r = te.reduce_axis(16, name="r")
    squares = te.compute((8,), lambda i: te.sum((x[i, r] - mean[i]) * (x[i, r] - mean[i]), axis=r), name="squares")
    assert lane_axis(squares) is r
    q = te.reduce_axis(8, name="q")
    columns = te.compute((16,), lambda j: te.sum(x[q, j], axis=q), name="columns")
    assert lane_axis(columns) is columns.axes[0]
