"""Bound inference: which box of a producer a tile of its consumer needs."""

from __future__ import annotations

from ansorlite import te
from ansorlite.schedule.regions import Box, Region, regions
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.rewriting import tensor_named
from ansorlite.te.tensor import Tensor
from tests import workloads


def of(dag: ComputeDAG, anchor: str, *stages: str, epilogue: str | None = None) -> tuple[Tensor, dict[str, Region]]:
    leader = tensor_named(dag, anchor)
    last = None if epilogue is None else tensor_named(dag, epilogue)
    found = regions(dag, leader, last, [tensor_named(dag, stage) for stage in stages])
    return leader, {tensor.name: region for tensor, region in found.items()}


def test_a_convolution_needs_a_halo() -> None:
    dag = ComputeDAG.of(workloads.conv2d(1, 4, 9, 9, 4, kernel=3, stride=2, pad=1, dilation=2))
    conv, found = of(dag, "conv", "padded")
    axes = {axis.name: axis for axis in (*conv.axes, *conv.reduce_axes)}
    _, channels, rows, _ = found["padded"]
    assert channels == Box(((axes["rc"], 1),), 0, 0)
    assert rows == Box(((axes["y"], 2), (axes["ry"], 2)), 0, 0)
    assert rows is not None
    # 1 + 2 (tile - 1) + 2 (taps - 1), never more than there is.
    assert [rows.length(dict.fromkeys(axes.values(), tile), 11) for tile in (1, 2, 3)] == [1, 5, 9]
    assert [rows.length(dict.fromkeys(axes.values(), tile), 6) for tile in (1, 2, 3)] == [1, 5, 6]


def test_a_reduction_needs_whole_rows() -> None:
    softmax, found = of(ComputeDAG.of(workloads.softmax(8, 16)), "softmax", "largest", "exp", "total")
    i, _ = softmax.axes
    assert found["total"] == (Box(((i, 1),), 0, 0),)
    # Read along a row by the total, and at one element by the quotient: the whole row.
    assert found["exp"] == (Box(((i, 1),), 0, 0), None)
    assert found["largest"] == (Box(((i, 1),), 0, 0),)


def test_reads_at_both_sides_need_the_hull() -> None:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: te.exp(a[i]), name="B")
    dag = ComputeDAG.of([a, te.compute((8,), lambda i: b[i] + b[i + 2] * b[i + 1], name="C")])
    c, found = of(dag, "C", "B")
    assert found["B"] == (Box(((c.axes[0], 1),), 0, 2),)


def test_a_tile_that_is_read_backwards_is_needed_from_its_last_element_on() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.exp(a[i]), name="B")
    c, found = of(ComputeDAG.of([a, te.compute((8,), lambda i: b[7 - i], name="C")]), "C", "B")
    assert found["B"] == (Box(((c.axes[0], -1),), 7, 0),)
    assert found["B"][0] is not None
    assert [found["B"][0].length({c.axes[0]: tile}, 8) for tile in (1, 3, 8)] == [1, 3, 8]


def test_quotients_are_needed_over_their_whole_range() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.exp(a[i]), name="B")
    c, found = of(ComputeDAG.of([a, te.compute((5, 2), lambda i, r: b[i + (r + 1) // 2 + 1], name="C")]), "C", "B")
    assert found["B"] == (Box(((c.axes[0], 1),), 1, 1),)


def test_what_no_box_describes_needs_everything() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.exp(a[i]), name="B")
    _, found = of(ComputeDAG.of([a, te.compute((3,), lambda i: b[i * i], name="C")]), "C", "B")
    assert found["B"] == (None,)


def test_through_an_epilogue_regions_are_in_terms_of_the_anchor() -> None:
    a, b, c = workloads.matmul(4, 6, 5)
    scale = te.compute((6,), lambda j: te.exp(te.cast(j, "float32")), name="scale")
    dag = ComputeDAG.of([a, b, te.compute((4, 6), lambda i, j: c[i, j] * scale[j], name="D")])
    anchor, found = of(dag, "C", "scale", epilogue="D")
    assert found["scale"] == (Box(((anchor.axes[1], 1),), 0, 0),)
