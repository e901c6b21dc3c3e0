"""Packed copies read their source as that lies in memory, and copy the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ansorlite as al
from ansorlite import te
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import host
from ansorlite.task import Task

TARGET = host(threads=2)


def tiled(tensor: str, i: tuple[int, int], j: tuple[int, int], k: tuple[int, int], lanes: int = 8) -> Callable[[Schedule], None]:
    """A product in tiles, with ``tensor`` packed at the root."""

    def schedule(s: Schedule) -> None:
        c = s.stage("C")
        i0, i1 = s.split(c["i"], (None, i[1]))
        j0, j1 = s.split(c["j"], (None, j[1]))
        k0, k1 = s.split(c["k"], (None, k[1]))
        s.reorder(i0, j0, k0, k1, i1, j1)
        s.vectorize(j1, lanes=lanes)
        s.cache_read("C", tensor, at=None, layout="packed")
        s.parallel((i0,), depth=1)
        s.unroll((i1,), max_steps=16)

    return schedule


def product(m: int, n: int, k: int, constant: bool = False) -> Task:
    a, b = te.placeholder((m, k), name="A", constant=constant), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return Task([a, b, c], TARGET)


def copy_of(task: Task, space: Callable[[Schedule], None], tensor: str) -> str:
    """The loops that make the copy, and whether the product is right."""
    kernel = al.compile(task, space=space)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, t.shape).astype(np.float32) for t in task.dag.inputs)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    lines = kernel.source("loops").splitlines()
    end = next(number for number, line in enumerate(lines) if f"{tensor}_packed[" in line)
    begin = max(
        number for number, line in enumerate(lines[:end]) if not line.strip().startswith(("for", "parallel", "vector", "unr"))
    )
    return "\n".join(line.strip() for line in lines[begin + 1 : end + 1])


def test_panels_come_last_where_they_are_whole_cache_lines() -> None:
    found = copy_of(product(8, 128, 24), tiled("B", (2, 4), (4, 32), (3, 8)), "B")
    assert found.startswith("parallel k0_k1 in 0..24:\nfor j0 in 0..4:\nvectorized(8) j1 in 0..32:\n")


def padded(tensor: str, loop: str, factor: int, offset: int) -> Callable[[Schedule], None]:
    """As ``tiled``, with the copy padded along a loop of the product."""

    def schedule(s: Schedule) -> None:
        tiled(tensor, (2, 4), (4, 32), (3, 8))(s)
        along = next(each for each in s.stage("C").loops if each.name == loop)
        s.storage_align(f"{tensor}_packed", along, factor, offset)

    return schedule


def test_panels_of_padded_lines_come_last_where_the_pads_are_whole_lines_too() -> None:
    moved = copy_of(product(8, 128, 24), padded("B", "k1", 48, 0), "B")
    assert moved.startswith("parallel k0_k1 in 0..24:\nfor j0 in 0..4:\nvectorized(8) j1 in 0..32:\n")
    stays = copy_of(product(8, 128, 24), padded("B", "k1", 32, 1), "B")
    assert stays.startswith("parallel j0_k0_k1 in 0..96:\nvectorized(8) j1 in 0..32:\n")


def test_padded_steps_that_are_not_even_are_no_run() -> None:
    even = copy_of(product(16, 128, 24), padded("A", "k1", 8, 1), "A")
    assert even.splitlines()[-3:-1] == ["unrolled i1 in 0..4:", "vectorized(8) k0_k1 in 0..24:"]
    uneven = copy_of(product(16, 128, 24), padded("A", "k0", 8, 1), "A")
    assert uneven.splitlines()[-3:-1] == ["unrolled i1 in 0..4:", "vectorized(8) k1 in 0..8:"]


def test_what_threads_copy_together_stays_in_the_order_of_the_copy() -> None:
    def schedule(bound: bool) -> Sketch:
        s = Schedule(product(8, 128, 24).dag, TARGET)
        c = s.stage("C")
        j0, j1 = s.split(c["j"], (None, 32))
        s.reorder(j0, c["k"], c["i"], j1)
        if bound:
            s.bind(j0, "block")
        s.cache_read("C", "B", at=None, layout="packed")
        return Sketch(s.structure, s.trace, TARGET)

    (free,), (held,) = (schedule(bound).fold(()).nests[0].packed for bound in (False, True))
    assert any(loop.moved and loop.trip > 1 for loop in free.loops)
    assert not any(loop.moved for loop in held.loops)


def test_panels_of_parts_of_lines_stay_in_the_order_of_the_copy() -> None:
    found = copy_of(product(8, 24, 24), tiled("B", (2, 4), (3, 8), (3, 8)), "B")
    assert found.startswith("parallel j0_k0_k1 in 0..72:\nvectorized(8) j1 in 0..8:\n")


def test_what_lies_across_is_read_in_vectors() -> None:
    found = copy_of(product(16, 24, 64), tiled("A", (4, 4), (3, 8), (2, 32)), "A")
    assert found.splitlines()[-3:-1] == ["unrolled i1 in 0..4:", "vectorized(8) k0_k1 in 0..64:"]


@pytest.mark.parametrize(("k", "step"), [(4, 2), (60, 16)])
def test_short_and_uneven_runs_are_read_one_by_one(k: int, step: int) -> None:
    found = copy_of(product(16, 24, k), tiled("A", (4, 4), (3, 8), (1, step)), "A")
    assert "vectorized" not in found


def test_windows_and_channels_are_one_run() -> None:
    x, w = te.placeholder((5, 8, 3), name="X"), te.placeholder((16, 8, 3), name="W")
    c, r = te.reduce_axis(8, name="c"), te.reduce_axis(3, name="r")
    out = te.compute((5, 16), lambda i, o: te.sum(x[i, c, r] * w[o, c, r], axis=(c, r)), name="Y")

    def schedule(s: Schedule) -> None:
        y = s.stage("Y")
        o0, o1 = s.split(y["o"], (None, 8))
        s.reorder(y["i"], o0, y["c"], y["r"], o1)
        s.vectorize(o1, lanes=8)
        s.cache_read("Y", "W", at=None, layout="packed")

    kernel = al.compile(Task([x, w, out], TARGET), space=schedule)
    assert "vectorized(8) c0_r0 in 0..24:" in kernel.source("loops")
    assert "scatter" not in kernel.source("llvm")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(np.float32) for shape in ((5, 8, 3), (16, 8, 3)))
    np.testing.assert_array_equal(kernel(a, b), np.einsum("icr,ocr->io", a, b))


def test_what_is_packed_once_is_not_written_out() -> None:
    space = tiled("A", (4, 4), (3, 8), (1, 4))
    each_call = copy_of(product(16, 24, 20), space, "A")
    assert each_call.splitlines()[-3] == "unrolled i1 in 0..4:"
    once = copy_of(product(16, 24, 20, constant=True), space, "A")
    assert once.splitlines()[-3] == "for i1 in 0..4:"
    assert "unrolled" not in once
