"""Schedules by hand for the threads of a block: bound as such, or as warps and their lanes; and what these cannot run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorlite.errors import ScheduleError, TargetError
from ansorlite.features import extract
from ansorlite.features.gpu import gpu_statements
from ansorlite.features.gpu_reference import gpu_reference
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.nodes import Function, LoopKind
from ansorlite.loops.printer import text
from ansorlite.loops.simplify import simplify
from ansorlite.loops.verifier import verify
from ansorlite.platforms import build
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import resolve
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.on_gpu import run
from tests.strategies import arrays_for, assert_close
from tests.unit.loops.build import argument, load, loop, store

TASK = Task(workloads.matmul_relu(12, 20, 9), resolve("emulated"))
EITHER = pytest.mark.parametrize(("outer", "inner"), [("thread", "thread"), ("warp", "lane")])


def tiled(s: Schedule, outer: str, inner: str, tile: bool = True) -> tuple[LoopRef, ...]:
    """Blocks of 4 x 5 elements, for each of which there is a thread: ``outer`` down and ``inner`` across."""
    c = s.stage("C")
    i0, i1 = s.split(c["i"], [None, 4])
    j0, j1 = s.split(c["j"], [None, 5])
    k0, k1 = s.split(c["k"], [None, 3])
    s.reorder(i0, j0, k0, i1, j1, k1)
    for here, kind in ((i0, "block"), (j0, "block"), (i1, outer), (j1, inner)):
        s.bind(here, kind)
    if tile:
        s.reverse_compute_at("D", j0)
    return i0, j0, k0, i1, j1, k1


def scheduled(steps: Callable[[Schedule], object]) -> Sketch:
    s = Schedule(TASK.dag, TASK.target)
    steps(s)
    return Sketch(s.structure, s.trace, TASK.target)


def check(sketch: Sketch) -> str:
    """It is right by the interpreter and on the machine for PTX; the loop IR."""
    function = sketch.lower(())
    verify(function)
    inputs = arrays_for(TASK.dag, np.random.default_rng(0))
    expected = evaluate(TASK.dag, inputs)
    outputs, by_machine = ([np.full(tensor.shape, np.nan, np.float32) for tensor in TASK.dag.outputs] for _ in range(2))
    interpret(function, [*inputs, *outputs], reorder=np.random.default_rng(1))
    assert_close(TASK.dag, outputs, expected)
    run(function, [*inputs, *by_machine])
    assert_close(TASK.dag, by_machine, expected)
    return text(function)


def check_features(sketch: Sketch) -> None:
    """They are those of its loops."""
    assert TASK.target.gpu is not None
    slow = gpu_reference(kernel_module(simplify(sketch.lower(()))), gpu_statements(sketch.fold(())), TASK.target.gpu)
    np.testing.assert_allclose(extract(sketch, np.zeros((1, 0), np.int64)), slow, rtol=0, atol=1e-9)


@EITHER
def test_threads_keep_tiles(outer: str, inner: str) -> None:
    """A tile outside of their loops has elements of each: of a warp's lanes, too."""
    sketch = scheduled(lambda s: tiled(s, outer, inner))
    check_features(sketch)
    printed = check(sketch)
    assert "alloc C_tile: float32[20] in PRIVATE" in printed
    place = "C_tile[i1_j1]" if outer == inner else "C_tile[i1 * 5 + j1]"
    assert printed.count(f"{outer} i1") == 3, "the start, the sum and what follows it"
    assert place in printed


@EITHER
def test_threads_share_copies(outer: str, inner: str) -> None:
    """They make them together, as many as there are."""

    def steps(s: Schedule) -> None:
        _, _, k0, *_ = tiled(s, outer, inner)
        s.cache_read("C", "A", at=k0, layout="plain", scope="shared")

    sketch = scheduled(steps)
    check_features(sketch)
    printed = check(sketch)
    assert "alloc A_plain: float32[4, 3] in SHARED" in printed
    assert "thread t in 0..20" in printed


def test_a_tile_may_be_of_lanes_alone() -> None:
    """What is made inside of a loop over warps is each thread's own."""

    def steps(s: Schedule) -> None:
        i0, j0, k0, i1, j1, k1 = tiled(s, "warp", "lane", tile=False)
        s.reorder(i0, j0, i1, k0, j1, k1)
        s.reverse_compute_at("D", i1)

    sketch = scheduled(steps)
    check_features(sketch)
    assert "alloc C_tile: float32[5] in LOCAL" in check(sketch)


def copied(s: Schedule, at: int, scope: str | None = None, layout: str = "plain") -> None:
    s.cache_read("C", "B", at=tiled(s, "thread", "thread")[at], scope=scope, layout=layout)


def shaped(s: Schedule) -> None:
    """A shared copy with loops of its own."""
    s.cache_read("C", "A", at=tiled(s, "thread", "thread")[2], layout="plain", scope="shared")
    s.split(s.stage("A_plain")["d1"], [None, 2])


def in_rows(s: Schedule, scope: str | None = "shared") -> None:
    """A packed copy of what all threads of a row read, where only the rows are threads."""
    c = s.stage("C")
    s.reorder(c["k"], c["i"], c["j"])
    s.split(c["k"], [None, 3])
    s.reorder(c["j"], s.stage("C")["k0"], c["i"], s.stage("C")["k1"])
    s.bind(c["j"], "block")
    s.bind(c["i"], "thread")
    s.cache_read("C", "B", at=s.stage("C")["k0"], scope=scope)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (
            lambda s: copied(s, 1),
            "B_plain is made in a block of C, but by none of its threads: make it inside of the loops that are",
        ),
        (lambda s: copied(s, 2, layout="packed"), "B_packed is made in a block of C, but by none of its threads"),
        (lambda s: copied(s, 4, "shared"), "B_plain is to be shared by the threads of a block: make it inside of a loop of C"),
        (lambda s: in_rows(s, None), "B_packed is made in a block of C, but by none of its threads"),
        (in_rows, "B_packed is to be shared by the threads of a block, but none of its own loops is bound to threads: bind one"),
        (shaped, "A_plain is to be shared by the threads of a block, but none of its own loops is bound to threads: bind one"),
    ],
)
def test_what_is_refused(steps: Callable[[Schedule], None], problem: str) -> None:
    with pytest.raises(ScheduleError) as error:
        scheduled(steps).lower(())
    assert problem in str(error.value)


@pytest.mark.parametrize(("at", "shape"), [(3, "[3, 1]"), (4, "[3, 1]"), (5, "[1, 1]")])
def test_what_a_thread_makes_for_itself(at: int, shape: str) -> None:
    """Inside of their loops, which are one."""
    assert f"alloc B_plain: float32{shape} in LOCAL" in check(scheduled(lambda s: copied(s, at)))


@pytest.mark.parametrize("target", ["sm_80", "mali-g710"])
def test_warps_have_so_many_lanes(target: str) -> None:
    """Where a loop over lanes has more iterations, the last ones would be done by none."""
    y = argument("Y", 2, 40)
    lanes = loop("l", 40, lambda lane: store(y, (0, lane), load(y, 0, lane)), LoopKind.LANE)
    phase = loop("w", 1, lambda _: lanes, LoopKind.WARP)
    with pytest.raises(TargetError, match="a loop over lanes has 40 iterations, and a warp 32 lanes; split it"):
        build(Function("kernel", (y,), 1, loop("b", 1, lambda _: phase, LoopKind.BLOCK)), resolve(target))
