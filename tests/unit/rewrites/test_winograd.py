"""Short convolutions: which computes are, and what they are rewritten to means the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ansorlite import te
from ansorlite.analysis.branches import branch_axes
from ansorlite.analysis.short_convolution import short_convolution
from ansorlite.features import extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.peel import peel
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.rewrites.winograd import winograd
from ansorlite.schedule.primitives import CacheWrite, Winograd
from ansorlite.sketch.program import lower
from ansorlite.sketch.rules import WITHOUT_WINOGRAD
from ansorlite.sketch.rules.winograd import winograd_rule
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.rewriting import tensor_named, with_constants
from ansorlite.te.tensor import Tensor
from ansorlite.topi.conv import conv
from tests.targets import WIDE


def convolution(data: tuple[int, ...], outputs: int, kernel: tuple[int, ...], border: int = 1, groups: int = 1) -> list[Tensor]:
    """A convolution, channels first, and a ReLU."""
    x = te.placeholder(data, name="x")
    w = te.placeholder((outputs, data[1] // groups, *kernel), name="w")
    c = conv(x, w, before=[border] * len(kernel), after=[border] * len(kernel), groups=groups)
    return [x, w, te.compute(c.shape, lambda *i: te.maximum(c[i], 0.0), name="out")]


def channels_last(height: int, width: int, depth: int, outputs: int) -> list[Tensor]:
    """A convolution ``[h, w, c]`` without a border, and a last dimension of the weight that is the outputs'."""
    x, w = te.placeholder((height + 2, width + 2, depth), name="x"), te.placeholder((3, 3, depth, outputs), name="w")
    r, s, c = te.reduce_axis(3, name="r"), te.reduce_axis(3, name="s"), te.reduce_axis(depth, name="c")
    return [x, w, te.compute(
        (height, width, outputs), lambda y, z, k: te.sum(x[y + r, z + s, c] * w[r, s, c, k], axis=[r, s, c]), name="conv"
    )]  # fmt: skip


def blocked(height: int, width: int, blocks: int, outputs: int, block: int = 4) -> list[Tensor]:
    """A convolution ``[c / b, h, w, b]`` with a border, and x * sigmoid(x), which reads it twice."""
    x = te.placeholder((blocks, height, width, block), name="x")
    w = te.placeholder((outputs, blocks, 3, 3, block, block), name="w")
    pad = te.compute(
        (blocks, height + 2, width + 2, block),
        lambda k, y, z, c: te.if_then_else(
            te.all(y >= 1, y < height + 1, z >= 1, z < width + 1), x[k, y - 1, z - 1, c], 0.0
        ),
        name="pad",
    )  # fmt: skip
    kb, r, s, kc = (te.reduce_axis(n, name=name) for n, name in ((blocks, "kb"), (3, "r"), (3, "s"), (block, "kc")))
    conv = te.compute(
        (outputs, height, width, block),
        lambda o, y, z, c: te.sum(pad[kb, y + r, z + s, kc] * w[o, kb, r, s, kc, c], axis=[kb, r, s, kc]),
        name="conv",
    )
    return [x, w, te.compute(conv.shape, lambda *i: conv[i] * te.sigmoid(conv[i]), name="out")]


#: Whatever it saves: these are small.
ANYWHERE = (winograd_rule(math.inf), *WITHOUT_WINOGRAD)

CASES = {
    "2d, tiles of 2": (convolution((2, 3, 8, 8), 4, (3, 3)), (2, 2)),
    "2d, tiles of 4, odd extents": (convolution((1, 3, 7, 13), 4, (3, 3)), (4, 4)),
    "2d, unlike kernels": (convolution((1, 3, 9, 9), 4, (3, 5)), (4, 2)),
    "one dimension": (convolution((2, 3, 11), 4, (3,)), (4,)),
    "three dimensions": (convolution((1, 2, 5, 6, 7), 3, (3, 3, 3)), (2, 2, 2)),
    "channels last": (channels_last(9, 6, 3, 5), (4, 4)),
    "blocked channels": (blocked(8, 28, 2, 2), (4, 4)),
    "blocked channels, odd extents": (blocked(7, 10, 2, 2), (4, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rewrite_means_the_same(name: str) -> None:
    tensors, outputs = CASES[name]
    dag = ComputeDAG.of(tensors)
    stage = next(t for t in dag.computes if short_convolution(t) is not None)
    fast = winograd(dag, stage.name, outputs)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in dag.inputs]
    (expected,), (found,) = evaluate(dag, arrays), evaluate(fast, arrays)
    assert fast.key != dag.key
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_what_is_no_short_convolution() -> None:
    x, w = te.placeholder((4, 20), name="x"), te.placeholder((5, 4, 3), name="w")
    c, r = te.reduce_axis(4, name="c"), te.reduce_axis(3, name="r")
    strided = te.compute((5, 9), lambda k, y: te.sum(x[c, 2 * y + r] * w[k, c, r], axis=[c, r]), name="strided")
    dilated = te.compute((5, 16), lambda k, y: te.sum(x[c, y + 2 * r] * w[k, c, r], axis=[c, r]), name="dilated")
    flipped = te.compute((5, 18), lambda k, y: te.sum(x[c, y + r] * w[k, c, 2 - r], axis=[c, r]), name="flipped")
    pointwise = te.compute((5, 20), lambda k, y: te.sum(x[c, y] * w[k, c, 0], axis=c), name="pointwise")
    depthwise = convolution((1, 4, 8, 8), 4, (3, 3), groups=4)
    dags = [ComputeDAG.of([x, w, strided, dilated, flipped, pointwise]), ComputeDAG.of(depthwise)]
    assert [t.name for dag in dags for t in dag.computes if short_convolution(t) is not None] == []


def test_choosing_axes_are_found() -> None:
    dag = ComputeDAG.of(CASES["2d, tiles of 2"][0])
    fast = winograd(dag, "conv", (2, 2))
    for name, axis in (("conv_data1", 0), ("conv_data0", 2), ("conv_inverse0", 0), ("conv_inverse1", 4)):
        stage = tensor_named(fast, name)
        assert branch_axes(stage) == {stage.axes[axis]}
    assert branch_axes(tensor_named(fast, "pad")) == frozenset()


def has_winograd(sketch: Sketch) -> bool:
    return any(isinstance(step, Winograd) for step in sketch.trace.steps)


@pytest.mark.parametrize("name", ["channels last", "blocked channels", "blocked channels, odd extents"])
def test_programs_compute_the_convolution(name: str) -> None:
    dag = ComputeDAG.of(CASES[name][0])
    only = [s for s in derive(Task(dag, WIDE), ANYWHERE) if has_winograd(s)]
    assert only
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in dag.inputs]
    (expected,) = evaluate(dag, arrays)
    for sketch in only[:3]:
        for row in TileSpace(sketch).sample(2, rng):
            found = np.full_like(expected, np.nan)
            interpret(sketch.lower(row), [*arrays, found], reorder=rng)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_the_transform_of_constant_weights_is_prepared() -> None:
    dag = with_constants(ComputeDAG.of(blocked(7, 10, 2, 2)), [False, True])
    rng = np.random.default_rng(3)
    arrays = [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in dag.inputs]
    (expected,) = evaluate(dag, arrays)
    for sketch in (s for s in derive(Task(dag, WIDE), ANYWHERE) if has_winograd(s)):
        rows = TileSpace(sketch).sample(2, rng)
        names = [facts.name for facts in population_facts(sketch.fold(rows[0]))]
        assert not any("filter" in name or "taps" in name for name in names)
        for features, row in zip(extract(sketch, rows), rows, strict=True):
            function = sketch.lower(row)
            verify(function)
            module = kernel_module(function)
            prepare, main = (launch.function for launch in module.launches)
            assert [buffer.name for buffer in prepare.params] == ["w", "conv_filter0_packed"]
            assert [buffer.name for buffer in main.params] == ["x", "conv_filter0_packed", "out"]
            np.testing.assert_allclose(features, reference(kernel_module(peel(function)), names, WIDE)[0], rtol=0, atol=1e-9)
            packed = np.empty(module.prepared[0].shape, np.float32)
            interpret(prepare, [arrays[1], packed], reorder=rng)
            found = np.full_like(expected, np.nan)
            interpret(main, [arrays[0], packed, found], reorder=rng)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_features_see_what_the_programs_do() -> None:
    """The contract of the features, on stages that read several elements of one box, and on loops that are written out."""
    dag = ComputeDAG.of(channels_last(7, 9, 4, 6))
    rng = np.random.default_rng(2)
    for sketch in (s for s in derive(Task(dag, WIDE), ANYWHERE) if has_winograd(s)):
        rows = TileSpace(sketch).sample(6, rng)
        names = [facts.name for facts in population_facts(sketch.fold(rows[0]))]
        slow = np.concatenate([reference(kernel_module(peel(sketch.lower(row))), names, WIDE) for row in rows])
        np.testing.assert_allclose(extract(sketch, rows), slow, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["channels last", "blocked channels, odd extents"])
def test_programs_are_replayed(name: str) -> None:
    task = Task(CASES[name][0], WIDE)
    rng = np.random.default_rng(4)
    for sketch in (s for s in derive(task, ANYWHERE) if has_winograd(s)):
        for row in TileSpace(sketch).sample(2, rng):
            assert text(lower(task, sketch.candidate(row))) == text(sketch.lower(row))


def resnet(channels: int, size: int, constant: bool) -> Task:
    return Task(with_constants(ComputeDAG.of(channels_last(size, size, channels, channels)), [False, constant]), WIDE)


def test_direct_sketches_stay() -> None:
    """Candidates of the direct sum and Winograd's are told apart, and are candidates of one and the same task."""
    task = resnet(64, 56, constant=True)
    plain, more = derive(task, WITHOUT_WINOGRAD), derive(task)
    assert {s.signature for s in plain} == {s.signature for s in more if not has_winograd(s)}
    assert any(has_winograd(s) for s in more)


@pytest.mark.parametrize(
    ("channels", "size", "constant", "expected"),
    [
        (64, 56, True, {(4, 4)}),
        (64, 56, False, {(4, 4)}),
        (256, 14, True, {(2, 2)}),  # larger tiles have 4 times the weights to read, these 16 / 9
        (512, 7, True, set()),  # which 4 or 16 tiles are not worth
        (16, 56, True, set()),  # few channels are not worth the transforms
    ],
)
def test_offered_where_it_saves_work(channels: int, size: int, constant: bool, expected: set[tuple[int, int]]) -> None:
    steps = [step for sketch in derive(resnet(channels, size, constant)) for step in sketch.trace.steps]
    assert {step.outputs for step in steps if isinstance(step, Winograd)} == expected


def test_a_sum_that_is_only_copied_out_is_not_asked_again() -> None:
    found = [sketch for sketch in derive(resnet(64, 56, constant=True)) if has_winograd(sketch)]
    assert found
    for sketch in found:
        steps = sketch.trace.steps
        caches = {step.name for step in steps if isinstance(step, CacheWrite)}
        assert not any(step.stage.name in caches for step in steps if isinstance(step, Winograd))


def test_transforming_weights_in_every_call_is_counted() -> None:
    constant, given = (derive(resnet(512, 10, each)) for each in (True, False))
    assert any(map(has_winograd, constant))
    assert not any(map(has_winograd, given))


def test_tiles_of_three_dimensions_are_small() -> None:
    x, w = te.placeholder((10, 10, 10, 64), name="x"), te.placeholder((3, 3, 3, 64, 64), name="w")
    r, s, t, c = (te.reduce_axis(n, name=name) for n, name in ((3, "r"), (3, "s"), (3, "t"), (64, "c")))
    conv3d = te.compute(
        (8, 8, 8, 64),
        lambda i, j, h, k: te.sum(x[i + r, j + s, h + t, c] * w[r, s, t, c, k], axis=[r, s, t, c]),
        name="conv",
    )
    steps = [step for sketch in derive(Task([x, w, conv3d], WIDE)) for step in sketch.trace.steps]
    assert {step.outputs for step in steps if isinstance(step, Winograd)} == {(2, 2, 2)}


def test_not_offered_where_windows_slide_along_lanes() -> None:
    dag = ComputeDAG.of(convolution((1, 64, 56, 56), 64, (3, 3)))
    assert not any(has_winograd(sketch) for sketch in derive(Task(dag, WIDE), ANYWHERE))
