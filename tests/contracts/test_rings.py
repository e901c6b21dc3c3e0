"""Schedules with rings: numpy = interpreter, with copies that land as late as they may = a CPU = the machine for PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.gpu_limits import shared_bytes
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.target import Target, resolve
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import times
from tests.contracts.test_right_numbers import compiled, interpreted, poisoned
from tests.on_gpu import compiled as to_ptx
from tests.on_gpu import launched, run, said_to_touch
from tests.strategies import arrays_for, assert_close

GPU: Target = resolve("emulated")


def product(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D")]


def convolution(height: int, channels: int, taps: int) -> list[te.Tensor]:
    """With zeros around it: what is copied is not all there."""
    x, w = te.placeholder((height, channels), name="A"), te.placeholder((taps, channels, 8), name="B")
    p = te.compute(
        (height + taps - 1, channels),
        lambda i, c: te.if_then_else(te.all(i >= 1, i < height + 1), x[i - 1, c], 0.0),
        name="P",
    )
    t, r = te.reduce_axis(taps, name="t"), te.reduce_axis(channels, name="k")
    c = te.compute((height, 8), lambda i, o: te.sum(p[i + t, r] * w[t, r, o], axis=(t, r)), name="C")
    return [x, w, te.compute((height, 8), lambda i, o: te.maximum(c[i, o], 0.0), name="D")]


def ringed(tensors: list[te.Tensor], rng: np.random.Generator) -> tuple[al.Task, Schedule]:
    """Tiles of any size, uneven ones too, in a ring of any depth over all outer steps of the sum."""
    task = al.Task(tensors, GPU)
    s = Schedule(task.dag, GPU)
    if "P" in s.structure.tensors:
        s.inline("P")
    c = s.stage("C")
    (i, j), sums = c.axes, c.reduce_axes
    threads, each = (1, 2, 4, 8), (1, 2, 4)
    tiles = [s.split(loop, [None, int(rng.choice(threads)), int(rng.choice(each))]) for loop in (i, j)]
    (i0, i1, i2), (j0, j1, j2) = tiles
    split = [s.split(loop, [None, int(rng.choice([1, 2, 3, 5, 8]))]) for loop in sums]
    outer, inner = [parts[0] for parts in split], [parts[1] for parts in split]
    s.reorder(i0, j0, *outer, i1, j1, *inner, i2, j2)
    steps = s.fuse(*outer) if len(outer) > 1 else outer[0]
    for loops, to in (((i0, j0), "block"), ((i1, j1), "thread")):
        for loop in loops:
            s.bind(loop, to)
    s.vectorize(j2, lanes=int(rng.choice([1, 2, 4])))
    s.unroll((*inner, i2, j2), max_steps=64)
    s.reverse_compute_at("D", j0)
    shape_copies(s, c.tensor, steps, rng)
    s.pipeline(steps, s.sample((1, 2, 3, 4, 6), name="stages"))
    return task, s


def shape_copies(s: Schedule, stage: te.Tensor, steps: LoopRef, rng: np.random.Generator) -> None:
    read: Sequence[te.Tensor] = s.dag.producers(s.stage(stage).tensor)
    for source in read:
        copy = s.cache_read(stage.name, source.name, at=steps, layout=str(rng.choice(["plain", "transposed"])), scope="shared")
        assert copy is not None
        s.vectorize(copy.loops[int(rng.choice([0, -1]))], lanes=int(rng.choice([1, 2, 4])))
        s.swizzle(copy, int(rng.choice([1, 2, 4, 8])))


@pytest.mark.parametrize("seed", range(times(6)))
def test_rings_are_right_and_told_apart(seed: int) -> None:
    rng = np.random.default_rng(500 + seed)
    tensors = (product(24, 32, 40), convolution(12, 16, 3), product(7, 20, 33))[seed % 3]
    task, s = ringed(tensors, rng)
    sketch = Sketch(s.structure, s.trace, GPU)
    rows = np.arange(sketch.holes[0].size)[:, None]
    rows = rows[TileSpace(sketch).valid(rows)]
    inputs = arrays_for(task.dag, rng)
    expected = evaluate(task.dag, inputs)
    known: dict[str, bytes] = {}
    for row, key in zip(rows, sketch.canonical(rows), strict=True):
        function = sketch.lower(row)
        verify(function)
        assert known.setdefault(text(function), key.tobytes()) == key.tobytes()
        assert text(sketch_of(task, sketch.candidate(row)).lower(())) == text(function)
        assert_close(task.dag, interpreted(task.dag, function, inputs, rng), expected)
        made = compiled(task.dag, function, inputs, GPU)
        assert made is not None
        assert_close(task.dag, made, expected)
        outputs = poisoned(task.dag)
        (kernel,) = launched(kernel_module(function), [*inputs, *outputs])
        assert_close(task.dag, outputs, expected)
        program = sketch.fold(row)
        assert kernel.shared == shared_bytes(program, program.nests[0])
    assert len(set(known.values())) == len(known)
    assert sum("await" in shown for shown in known) >= 1


@pytest.mark.parametrize(("pad", "swizzle", "free"), [(4, 1, True), (0, 8, True), (0, 1, False)])
def test_a_layout_without_conflicts_can_be_said(pad: int, swizzle: int, free: bool) -> None:
    """A product whose transposed copy is stored down its rows, and read along them: no access takes more passes than it must.

    The features know how many that are, and how many sectors of memory are touched.
    """
    task = al.Task(product(128, 128, 32), "sm_80")
    s = Schedule(task.dag, task.target)
    c = s.stage("C")
    (i, j), (k,) = c.axes, c.reduce_axes
    # A thread has 8 x 8 sums: of B vectors of 4, that of its neighbour right behind its own.
    (i0, i1, i2), (j0, j2, j1, j3) = s.split(i, (None, 16, 8)), s.split(j, (None, 2, 16, 4))
    k0, k1 = s.split(k, (None, 8))
    s.reorder(i0, j0, k0, i1, j1, k1, i2, j2, j3)
    for loops, to in (((i0, j0), "block"), ((i1, j1), "thread")):
        for loop in loops:
            s.bind(loop, to)
    s.vectorize(j3, lanes=4)
    s.unroll((k1, i2, j2), max_steps=1024)
    s.reverse_compute_at("D", j0)
    for source, layout, lanes in (("A", "transposed", 1), ("B", "plain", 4)):
        copy = s.cache_read(c, source, at=k0, layout=layout, scope="shared")
        assert copy is not None
        s.vectorize(copy.loops[-1], lanes=lanes)
        if layout == "transposed":
            s.storage_align(copy, copy.axes[0], 32, pad)
            s.swizzle(copy, swizzle)
    s.pipeline(k0, 3)
    sketch = Sketch(s.structure, s.trace, task.target)
    function = sketch.lower(())
    rng = np.random.default_rng(0)
    a, b = (rng.random(shape, dtype=np.float32) for shape in ((128, 32), (32, 128)))
    out = np.full((128, 128), np.nan, np.float32)
    (counts,) = run(function, [a, b, out])
    np.testing.assert_allclose(out, a @ b, rtol=1e-4)
    assert (counts.wavefronts == counts.ideal_wavefronts) == free
    assert counts.sectors == counts.ideal_sectors
    assert said_to_touch(sketch, ()) == pytest.approx((counts.wavefronts, counts.sectors))


@pytest.mark.parametrize(("columns", "size"), [(100, 16), (102, 8), (101, 4)])
def test_tiles_that_are_shifted_back_from_an_edge_are_copied_in_whole_vectors(columns: int, size: int) -> None:
    """As far as the shift, and the length of rows, leave them at multiples of these."""
    task = al.Task(product(16, columns, 12), resolve("a100"))
    s = Schedule(task.dag, task.target)
    c = s.stage("C")
    (i, j), (k,) = c.axes, c.reduce_axes
    (i0, i1, i2), (j0, j1, j2), (k0, k1) = s.split(i, (None, 4, 4)), s.split(j, (None, 16, 4)), s.split(k, (None, 4))
    s.reorder(i0, j0, k0, i1, j1, k1, i2, j2)
    for loops, to in (((i0, j0), "block"), ((i1, j1), "thread")):
        for loop in loops:
            s.bind(loop, to)
    s.unroll((k1, i2, j2), max_steps=64)
    s.reverse_compute_at("D", j0)
    copy = s.cache_read(c, "B", at=k0, layout="plain", scope="shared")
    assert copy is not None
    s.vectorize(copy.loops[-1], lanes=4)
    s.pipeline(k0, 2)
    function = Sketch(s.structure, s.trace, task.target).lower(())
    ptx, _ = to_ptx(function, task.target)
    found = {int(number) for number in re.findall(r"cp\.async\.c[ag]\.shared\.global \[[^]]+\], \[[^]]+\], (\d+);", ptx)}
    assert found == {size}
    rng = np.random.default_rng(41)
    inputs, outputs = arrays_for(task.dag, rng), poisoned(task.dag)
    launched(kernel_module(function), [*inputs, *outputs], task.target)
    assert_close(task.dag, outputs, evaluate(task.dag, inputs))
