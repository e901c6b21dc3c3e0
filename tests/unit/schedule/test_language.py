"""The schedule language: what its primitives make of loops, and what they refuse."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import numpy as np
import pytest

from ansorlite import te
from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.printer import text
from ansorlite.loops.verifier import verify
from ansorlite.schedule.primitives import PRIMITIVES
from ansorlite.schedule.refs import LoopRef
from ansorlite.schedule.samples import Value
from ansorlite.schedule.schedule import Schedule
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.task import Task
from ansorlite.te import dtypes
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.strategies import arrays_for, assert_close
from tests.targets import WIDE

MATMUL_RELU = Task(workloads.matmul_relu(12, 20, 9), WIDE)
DEPTHWISE = Task(workloads.depthwise(1, 3, 9, 9), WIDE)
STEPS = Callable[[Schedule], object]


def loops(steps: STEPS, task: Task = MATMUL_RELU) -> str:
    """The loop IR, which is checked: it computes what the expression says, and its trace makes it again."""
    s = Schedule(task.dag, task.target)
    steps(s)
    function = Sketch(s.structure, s.trace, task.target).lower(())
    verify(function)
    inputs = arrays_for(task.dag, np.random.default_rng(0))
    outputs = [np.zeros(t.shape, dtypes.NUMPY[t.dtype]) for t in task.dag.outputs]
    interpret(function, [*inputs, *outputs], reorder=np.random.default_rng(1))
    assert_close(task.dag, outputs, evaluate(task.dag, inputs))
    assert text(sketch_of(task, Candidate(str(s.trace))).lower(())) == text(function)
    return text(function)


def heads(printed: str) -> list[str]:
    """The loops, in order."""
    return re.findall(r"(?:for|parallel|unrolled|vectorized\(\d+\)) (\w+ in \S+):", printed)


def refused(steps: STEPS, task: Task = MATMUL_RELU) -> str:
    with pytest.raises(ScheduleError) as error:
        loops(steps, task)
    return str(error.value)


def test_nothing_is_done_to_the_loops_as_written() -> None:
    assert heads(loops(lambda _: None)) == ["i0 in 0..12", "j0 in 0..20", "k0 in 0..9", "i0_1 in 0..12", "j0_1 in 0..20"]


def test_split_and_reorder_as_by_hand() -> None:
    def steps(s: Schedule) -> None:
        c = s.stage("C")
        i, j = c.axes
        (k,) = c.reduce_axes
        i0, i1 = s.split(i, [None, 4])
        j0, j1 = s.split(j, [None, 5])
        s.reorder(i0, j0, k, i1, j1)

    assert "for k0 in 0..9:\n                for i1_1 in 0..4:\n                    for j1_1 in 0..5:" in loops(steps)


def test_a_loop_is_split_again_and_again_and_its_parts_stand_in_any_order() -> None:
    def steps(s: Schedule) -> None:
        c = s.stage("C")
        j0, j1 = s.split(c["j"], [None, 10])
        j10, j11 = s.split(j1, [5, None])
        j000, j001 = s.split(j0, [2, None])
        s.reorder(j11, c["k"], j10, j000, c["i"], j001)

    assert len(heads(loops(steps))) >= 6


def test_uneven_splits_are_shifted_inwards_or_cut() -> None:
    def shifted(s: Schedule) -> None:
        local = s.cache_write("C")
        i0, _ = s.split(local["i"], [None, 5])
        s.reverse_compute_at("C", i0)

    def cut(s: Schedule) -> None:
        i0, i1 = s.split(s.stage("C")["i"], [None, 5])
        s.reorder(s.stage("C")["k"], i0, i1)

    assert "min(i0 * 5, 7)" in loops(shifted, Task(workloads.matmul(12, 20, 9), WIDE))
    assert "min(5, 12 - i0 * 5)" in loops(cut)


def test_a_reduction_is_split_unevenly_inside_of_an_uneven_split() -> None:
    def steps(s: Schedule) -> None:
        _, k1 = s.split(s.stage("C")["k"], [None, 5])
        s.split(k1, [None, 2])

    assert "for k2 in 0..min(min(2, 9 - k0 * 5 - k1 * 2), 5 - k1 * 2):" in loops(steps)


def test_accumulators_start_where_it_is_said() -> None:
    def steps(at: str | None) -> STEPS:
        return lambda s: s.decompose_reduction("C", None if at is None else s.stage("C")[at])

    assert "for i0 in 0..12:\n        for j0 in 0..20:\n            C[i0, j0] = 0.0  # C.init" in loops(steps("i"))
    assert loops(steps("j")) == loops(lambda _: None)
    assert heads(loops(steps(None)))[:4] == ["i0 in 0..12", "j0 in 0..20", "i0_1 in 0..12", "j0_1 in 0..20"]


def test_accumulators_of_a_tile_start_in_it() -> None:
    def steps(s: Schedule) -> None:
        s.reverse_compute_at("D", s.stage("C")["i"])
        s.decompose_reduction("C", None)

    inside = "alloc C_tile: float32[20] in LOCAL\n        for j0 in 0..20:\n            C_tile[j0] = 0.0"
    assert f"    for i0 in 0..12:\n        {inside}" in loops(steps)


def test_a_stage_is_computed_into_registers_and_copied_back_in_a_loop() -> None:
    def steps(s: Schedule) -> None:
        c = s.stage("C")
        i0, i1 = s.split(c["i"], [None, 2])
        j0, j1 = s.split(c["j"], [None, 4])
        s.reorder(i0, j0, c["k"], i1, j1)
        s.unroll((i1, j1))
        local = s.cache_write("C", scope="register", at=j0)
        assert [loop.name for loop in local.loops] == ["i0", "j0", "k", "i1", "j1"]

    printed = loops(steps)
    assert "alloc C_local_tile: float32[2, 4] in REGISTER" in printed
    assert "C[i0 * 2 + i1_2, j0 * 4 + j1_2] = C_local_tile[i1_2, j1_2]  # C" in printed


def test_a_cache_is_in_the_memory_that_it_is_said_to_be_in() -> None:
    def steps(scope: str) -> STEPS:
        def made(s: Schedule) -> None:
            s.unroll(s.stage("C")["j"])
            s.cache_write("C", scope=scope, at=s.stage("C")["i"])

        return made

    assert "alloc C_local_tile: float32[20] in REGISTER" in loops(steps("register"))
    assert "alloc C_local_tile: float32[20] in LOCAL" in loops(steps("local"))
    assert "alloc C_local: float32[12, 20] in GLOBAL" in loops(lambda s: s.cache_write("C", scope="global"))


def test_rows_whose_cache_would_not_be_in_registers_are_not_valid() -> None:
    s = Schedule(MATMUL_RELU.dag, MATMUL_RELU.target)
    _, j1 = s.split(s.stage("C")["j"], [s.sample((1, 5)), None])
    s.unroll(j1, max_steps=8)
    s.cache_write("C", scope="register", at=s.stage("C").loops[1])
    space = TileSpace(Sketch(s.structure, s.trace, MATMUL_RELU.target))
    np.testing.assert_array_equal(space.valid(np.array([[0], [1]])), [False, True])


def test_places_are_loops() -> None:
    def steps(s: Schedule) -> None:
        i0, _ = s.split(s.stage("C")["i"], [None, 4])
        s.reverse_compute_at("D", i0)
        s.cache_read("C", "A", at=i0, layout="packed")

    printed = loops(steps)
    assert "alloc C_tile: float32[4, 20]" in printed
    assert "alloc A_packed: float32[4, 9]" in printed


def test_a_producer_is_computed_where_its_consumer_needs_it() -> None:
    inside = loops(lambda s: s.compute_at("padded", s.stage("depthwise")["y"]), DEPTHWISE)
    assert "alloc padded: float32[1, 1, 3, 11] in LOCAL" in inside


def test_loops_over_a_region_are_shaped() -> None:
    def steps(s: Schedule) -> None:
        y0, _ = s.split(s.stage("depthwise")["y"], [None, 4])
        s.compute_at("padded", y0)
        p = s.stage("padded")
        z0, z1 = s.split(p.loops[3], [None, 4])
        s.reorder(z0, p.loops[2], z1)
        s.unroll(p.loops[2])
        s.vectorize(z1, lanes=4)

    printed = loops(steps, DEPTHWISE)
    assert "alloc padded: float32[1, 1, 6, 11] in LOCAL" in printed
    assert "vectorized(4)" in printed
    # What is left for the last run is computed again, within the region.
    assert "min(z0 * 4, 7)" in printed


def softmax(steps: STEPS) -> str:
    return loops(steps, Task(workloads.softmax(6, 10), WIDE))


def test_a_stage_is_computed_in_the_loops_of_one_that_is_computed_in_another_ones() -> None:
    def steps(s: Schedule) -> None:
        out = s.dag.outputs[0].name
        s.compute_at("total", s.stage(out).loops[0])
        s.compute_at("exp", s.stage(out).loops[0])
        s.compute_at("largest", s.stage("exp").loops[0])
        s.decompose_reduction("largest", s.stage("largest").loops[0])

    printed = softmax(steps)
    assert printed.index("alloc exp: float32[1, 10] in LOCAL") < printed.index("alloc largest: float32[1] in LOCAL")


def test_a_reduction_in_a_region_adds_up_in_registers() -> None:
    def steps(s: Schedule) -> None:
        d = s.stage("D")
        i0, i1 = s.split(d["i"], [None, 4])
        j0, j1 = s.split(d["j"], [None, 5])
        s.reorder(i0, j0, i1, j1)
        s.compute_at("C", j0)
        c = s.stage("C")
        s.reorder(c["k"], *c.axes)
        s.unroll(c.axes)

    printed = loops(steps)
    assert "alloc C: float32[4, 5] in LOCAL" in printed
    assert "alloc C_reg: float32[4, 5] in REGISTER" in printed


def test_rfactor_tensorize_and_parallel() -> None:
    def steps(s: Schedule) -> None:
        (r,) = s.stage("squares").reduce_axes
        parts = s.rfactor(r)
        local = s.cache_write(parts)
        r0, r1 = s.split(local[r.name], [4, None])
        s.reverse_compute_at(parts, r0)
        s.parallel(r0)
        s.vectorize(r1)

    printed = loops(steps, Task(workloads.sum_of_squares(509), WIDE))
    assert "parallel r0 in 0..4" in printed
    assert "vectorized(16)" in printed


def test_numbers_of_lanes_come_from_the_target() -> None:
    printed = loops(lambda s: s.vectorize(s.stage("D").loops[-1]))
    assert "vectorized(16) j0_1 in 0..20" in printed


def test_loops_are_bound() -> None:
    def steps(s: Schedule) -> None:
        c = s.stage("C")
        i0, i1 = s.split(c["i"], [None, 4])
        j0, j1 = s.split(c["j"], [None, 5])
        s.reorder(i0, j0, c["k"], i1, j1)
        s.bind(i0, "block")
        s.bind(j0, "vthread")
        s.bind(i1, "warp")
        s.bind(j1, "lane")
        s.reverse_compute_at("D", j0)

    printed = loops(steps)
    assert "block i0 in 0..3:" in printed
    assert "vthread j0 in 0..4:" in printed
    assert printed.count("warp i") == printed.count("lane j") == 3, "the start, the sum and what follows it"


@pytest.mark.parametrize("share", [lambda s, loop: s.parallel(loop), lambda s, loop: s.bind(loop, "block")])
def test_shared_iterations_do_not_add_to_one_element(share: Callable[[Schedule, LoopRef], None]) -> None:
    def steps(s: Schedule, inner: int) -> None:
        c = s.stage("C")
        i0, i1 = s.split(c["i"], [None, inner])
        s.reorder(i0, i1, c["k"], c["j"])
        share(s, i0)

    assert "its last iteration would add to elements of another one" in refused(lambda s: steps(s, 5))
    loops(lambda s: steps(s, 4))


def test_strides_are_padded() -> None:
    padded = Schedule(DEPTHWISE.dag).stage("padded")
    names = [axis.name for axis in padded.axes]

    def whole(s: Schedule) -> None:
        s.compute_root("padded")
        s.storage_align("padded", s.stage("padded")[names[1]], 100)
        s.storage_align("padded", s.stage("padded")[names[2]], 16, 8)

    assert "alloc padded: float32[1, 3, 11, 11] strides [900, 300, 24, 1] in GLOBAL" in loops(whole, DEPTHWISE)

    def inside(s: Schedule) -> None:
        s.compute_at("padded", s.stage("depthwise")["y"])
        s.storage_align("padded", s.stage("padded")[names[2]], 16, 8)

    assert "alloc padded: float32[1, 1, 3, 11] strides [72, 72, 24, 1] in LOCAL" in loops(inside, DEPTHWISE)

    assert "alloc copy: float32[4, 9] strides [17, 1] in LOCAL" in loops(lambda s: aligned_copy(s, 1))
    assert "alloc copy: float32[4, 9] strides [16, 1] in LOCAL" in loops(lambda s: aligned_copy(s, 0))


def aligned_copy(s: Schedule, offset: Value) -> None:
    i0, i1 = s.split(s.stage("C")["i"], [None, 4])
    s.cache_read("C", "A", at=i0, name="copy")
    s.storage_align("copy", i1, 16, offset)


def test_padding_may_be_sampled_and_tells_programs_apart() -> None:
    s = Schedule(MATMUL_RELU.dag, WIDE)
    aligned_copy(s, s.sample((0, 1, 17), name="offset"))
    sketch = Sketch(s.structure, s.trace, WIDE)
    keys = sketch.canonical(np.array([[0], [1], [2]]))
    assert (keys[1] == keys[2]).all()
    assert (keys[0] != keys[1]).any()


def test_copies_lie_as_the_tensor_does_or_the_other_way() -> None:
    def steps(s: Schedule, layout: str, scope: str | None = None) -> None:
        i0, i1 = s.split(s.stage("C")["i"], [None, 4])
        if scope is not None:
            s.bind(i0, "block")
            s.bind(i1, "thread")
        copy = s.cache_read("C", "A", at=i0, layout=layout, scope=scope)
        assert copy is not None
        s.vectorize(s.stage(copy.name).loops[-1] if layout == "plain" else copy["d1"], lanes=8)

    assert "alloc A_plain: float32[4, 9] in LOCAL" in loops(lambda s: steps(s, "plain"))
    printed = loops(lambda s: steps(s, "transposed", "shared"))
    assert "alloc A_transposed: float32[9, 4] in SHARED" in printed
    assert "A_transposed[k0, i1] * B[k0, j0]" in printed


def test_a_copy_of_a_window_that_slides() -> None:
    printed = loops(
        lambda s: s.cache_read("pool", "X", at=s.stage("pool")["y"], layout="plain"), Task(workloads.max_pool(1, 3, 9, 9), WIDE)
    )
    assert "alloc X_plain: float32[1, 1, 3, 9] in LOCAL" in printed


LONG = Task(workloads.matmul_relu(12, 40, 20), WIDE)


def test_what_is_read_later_is_asked_for() -> None:
    def steps(s: Schedule, copied: bool, outer: bool) -> None:
        c = s.stage("C")
        j0, j1 = s.split(c["j"], [None, 20])
        k0, k1 = s.split(c["k"], [None, 5])
        s.reorder(j0, k0, c["i"], k1, j1)
        if copied:
            s.cache_read("C", "B", at=k0)
        s.prefetch("C", "B", at=k0 if outer else k1, distance=2)

    plain = loops(lambda s: steps(s, False, False), LONG)
    assert "prefetch B[min(k1 + 2, 4) + k0 * 5, min(j1 * 16, 19) + j0_1 * 20]" in plain or "prefetch B[" in plain
    assert "prefetch B_packed[" in loops(lambda s: steps(s, True, False), LONG), "what is read is the copy"
    source = loops(lambda s: steps(s, True, True), LONG)
    assert "prefetch B[" in source, "what is copied next"
    assert "# C" in source


def test_a_bound_loop_of_uneven_runs_is_a_condition_of_rows() -> None:
    s = Schedule(MATMUL_RELU.dag, WIDE)
    c = s.stage("C")
    i0, i1 = s.split(c["i"], [None, s.sample((4, 5), name="width")])
    s.reorder(c["k"], i0, i1)
    s.bind(i1, "thread")
    sketch = Sketch(s.structure, s.trace, WIDE)
    assert sketch.valid(np.array([[0], [1]])).tolist() == [True, False]
    with pytest.raises(ScheduleError, match="loop i1 of stage C is bound to thread, but its last run is short"):
        sketch.lower((1,))


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (lambda s: s.storage_align("C", s.stage("C")["j"], 16), "neighbours along C.j lie side by side: name the axis around it"),
        (lambda s: s.storage_align("C", s.stage("D")["i"], 16), "stage C has the axes i, j; name one of these, not D.i"),
        (lambda s: s.storage_align("C", s.stage("C")["k"], 16), "stage C has the axes i, j; name one of these, not C.k"),
        (lambda s: s.storage_align("D", s.stage("D")["i"], 16), "stage D is an output: callers say how it lies in memory"),
        (lambda s: s.storage_align("A", s.stage("C")["i"], 16), "A is an input"),
        (lambda s: s.storage_align("C", s.stage("C")["i"], 0), "give a factor from 1 to 4096"),
        (lambda s: s.storage_align("C", s.stage("C")["i"], 8, -1), "has an offset of -1, less than 0"),
        (
            lambda s: (s.reverse_compute_at("D", s.stage("C")["i"]), s.storage_align("C", s.stage("C")["i"], 16)),
            "stage C is a tile of accumulators",
        ),
        (
            lambda s: (s.cache_read("C", "A", name="copy"), s.storage_align("copy", s.stage("D")["i"], 16)),
            "copy is a copy for C: name one of the loops of that, not D.i",
        ),
        (
            lambda s: (aligned_copy(s, 0), s.split(s.stage("C")["i1"], [2, 2])),
            "loop C.i1 cannot be split after storage_align of copy",
        ),
        (lambda s: s.cache_read("C", "A", scope="global"), "has the scope 'global'; it can be 'shared'"),
        (lambda s: s.cache_read("C", "A", scope="shared"), "make it inside of a loop of C, outside of the loops that are bound"),
        (
            lambda s: (s.bind(s.stage("C")["i"], "lane"), s.cache_read("C", "A", at=s.stage("C")["i"], scope="shared")),
            "A_packed is to be shared by the threads of a block",
        ),
        (
            lambda s: (
                s.split(s.stage("C")["i"], [1, None]),
                s.bind(s.stage("C")["i0"], "vthread"),
                s.cache_read("C", "A", at=s.stage("C")["i1"], scope="shared"),
            ),
            "A_packed is to be shared by the threads of a block",
        ),
        (lambda s: s.cache_read("D", "A", layout="plain"), "stage D reads nothing of A"),
        (lambda s: s.cache_read("C", "A", layout="plain", computed=True), "is computed into packed copies only"),
        (
            lambda s: (s.reverse_compute_at("D", s.stage("C")["i"]), s.cache_read("D", "C", layout="plain")),
            "stage D follows C, whose tile it reads",
        ),
        (lambda s: s.prefetch("C", "B", at=s.stage("C")["i"]), "every iteration of loop C.i reads the same elements of B"),
        (lambda s: s.prefetch("C", "B", at=s.stage("C")["k"], distance=0), "asked for 0 iterations ahead; one is the least"),
        (lambda s: s.prefetch("D", "B", at=s.stage("D")["i"]), "stage D reads 0 elements of B at a time"),
        (lambda s: s.prefetch("C", "B", at=s.stage("D")["i"]), "is asked for in its own loops, not in D.i"),
        (
            lambda s: (s.parallel(s.stage("C")["i"]), s.prefetch("C", "A", at=s.stage("C")["i"])),
            "A cannot be asked for ahead in loop i of stage C, whose iterations threads share",
        ),
        (
            lambda s: (s.bind(s.stage("C")["i"], "block"), s.prefetch("C", "A", at=s.stage("C")["i"])),
            "whose iterations do not run one after another",
        ),
        (lambda s: s.bind(s.stage("C")["i"], "grid"), "is to be bound to 'grid'; there are block, vthread, warp, lane, thread"),
        (
            lambda s: s.bind(s.stage("C")["k"], "lane"),
            "loop C.k cannot be bound to lane: its iterations add to the same elements",
        ),
        (
            lambda s: (
                s.reorder(s.stage("C")["i"], s.stage("C")["k"], s.stage("C")["j"]),
                s.bind(s.stage("C")["i"], "block"),
                s.bind(s.stage("C")["j"], "block"),
            ),
            "loops i and j of stage C are bound to block, but k is between them; reorder them side by side",
        ),
        (
            lambda s: (s.bind(s.stage("C")["i"], "thread"), s.bind(s.stage("C")["j"], "block")),
            "loop j of stage C, bound to block, is inside of loop i, bound to thread",
        ),
        (
            lambda s: (s.bind(s.stage("C")["i"], "thread"), s.bind(s.stage("C")["j"], "lane")),
            "loop j of stage C, bound to lane, is inside of loop i, bound to thread",
        ),
        (lambda s: (s.bind(s.stage("C")["i"], "block"), s.parallel(s.stage("C")["i"])), "cannot be both bound and parallel"),
        (lambda s: (s.unroll(s.stage("C")["j"]), s.bind(s.stage("C")["j"], "thread")), "cannot be both unrolled and bound"),
        (lambda s: (s.bind(s.stage("C")["i"], "block"), s.split(s.stage("C")["i"], [2, 6])), "cannot be split after bind"),
        (lambda s: s.stage("Z"), "there is no stage 'Z'; there are A, B, C, D"),
        (lambda s: s.stage("A"), "A is an input"),
        (lambda s: s.split(s.stage("C")["x"], [None, 2]), "stage C has no loop x; it has i, j, k"),
        (
            lambda s: (s.split(s.stage("C")["i"], [None, 2]), s.split(s.stage("C")["i"], [None, 2])),
            "i of stage C is gone: it was split into i0, i1; name one of these",
        ),
        (lambda s: s.split(s.stage("C")["i"], [2, 3]), "the factors 2, 3 cover fewer; make one of them None"),
        (lambda s: s.split(s.stage("C")["i"], [None, None]), "only one factor can be what the others leave"),
        (lambda s: s.split(s.stage("C")["i"], [None, 0]), "a loop has at least one iteration"),
        (lambda s: s.split(s.stage("C")["i"], []), "cannot be split into no loops"),
        (lambda s: s.split(s.stage("C")["i"], [None, 2], tail="wrap"), "it is one of shift, cut"),
        (lambda s: s.reorder(s.stage("C")["i"], s.stage("D")["i"]), "reorder takes loops of one stage"),
        (lambda s: s.reorder(s.stage("C")["i"], s.stage("C")["i"]), "one is named twice"),
        (lambda s: s.parallel(s.stage("C")["k"]), "its iterations add to the same elements; rfactor it first"),
        (lambda s: s.parallel(s.stage("C")["j"]), "are to be parallel, but the outermost ones are i; reorder them"),
        (lambda s: s.vectorize(s.stage("C")["i"]), "loop i of stage C is vectorized, but k is the innermost one"),
        (lambda s: s.compute_at("C", s.stage("C")["i"]), "C cannot be computed in loops of C"),
        (lambda s: s.compute_at("D", s.stage("C")["i"]), "stage D is an output"),
        (lambda s: s.reverse_compute_at("C", s.stage("D")["i"]), "stage C cannot follow D"),
        (lambda s: s.inline("C"), "stage C adds up over k: it cannot be inlined; use compute_at"),
        (lambda s: s.inline("D"), "stage D is an output"),
        (lambda s: s.cache_read("C", "A", layout="swizzled"), "it can be 'packed'"),
        (
            lambda s: s.tensorize(s.stage("C")["k"], "dot_of_nothing"),
            "loop C.k is to be tensorized by 'dot_of_nothing'; there are",
        ),
        (lambda s: s.decompose_reduction("D", None), "stage D adds nothing up"),
        (lambda s: s.decompose_reduction("C", s.stage("C")["k"]), "cannot start inside of loop k: loop k adds up there"),
        (lambda s: s.decompose_reduction("C", s.stage("D")["i"]), "start in its own loops"),
        (lambda s: s.reverse_compute_at("D", s.sample((s.stage("C")["i"], None))), "name a loop of that, not the root"),
        (lambda s: s.cache_write("C", scope="shared"), "it is one of register, local, global"),
        (lambda s: s.cache_write("C", scope="register"), "nothing copies it from there in its loops"),
        (
            lambda s: s.cache_write("C", scope="register", at=s.stage("C")["i"]),
            "of the loops over its tile j are no straight-line",
        ),
        (lambda s: s.cache_write("C", scope="global", at=s.stage("C")["i"]), "leave out one"),
        (lambda s: s.cache_write("C", at=s.stage("D")["i"]), "copied back in a loop of its own"),
        (lambda s: (s.reverse_compute_at("D", s.stage("C")["i"]), s.cache_write("C", at=s.stage("C")["i"])), "stage D follows C"),
        (
            lambda s: (s.split(s.stage("C")["i"], [None, 4]), s.compute_at("C", s.stage("D")["i"])),
            "stage C has loops of its own already",
        ),
        (
            lambda s: (s.reverse_compute_at("D", s.stage("C")["i"]), s.compute_at("C", None)),
            "stage C has D following it in its loops",
        ),
        (lambda s: s.rfactor(s.stage("C")["i"]), "only a reduction's loop can be rfactored"),
        (lambda s: s.winograd("C", (2,)), "is no short convolution"),
        (lambda s: s.pipeline(s.stage("C")["k"], 0), "a ring has at least one slot"),
        (lambda s: s.pipeline(s.stage("C")["k"], 3), "is not inside of loops that are bound to block"),
        (lambda s: (s.bind(s.stage("C")["i"], "block"), s.pipeline(s.stage("C")["i"], 3)), "cannot be both bound and pipelined"),
        (
            lambda s: (s.bind(s.stage("C")["i"], "block"), s.pipeline(s.stage("C")["k"], 3)),
            "the loops bound to threads are not inside of it",
        ),
        (
            lambda s: (
                s.reorder(s.stage("C")["i"], s.stage("C")["k"], s.stage("C")["j"]),
                s.bind(s.stage("C")["i"], "block"),
                s.bind(s.stage("C")["j"], "thread"),
                s.pipeline(s.stage("C")["k"], 3),
            ),
            "a CPU is asked to bring in what comes next (prefetch)",
        ),
        (
            lambda s: (s.pipeline(s.stage("C")["k"], 3), s.pipeline(s.stage("C")["j"], 3)),
            "loop k of stage C is pipelined already",
        ),
        (lambda s: (s.pipeline(s.stage("C")["k"], 3), s.split(s.stage("C")["k"], [None, 3])), "cannot be split after pipeline"),
        (lambda s: s.sample(()), "a sample has no choices"),
        (lambda s: s.sample(range(10**9)), "more than 65,536 choices"),
        (lambda s: s.sample(("a", "b")), "choices are whole numbers, or loops and None"),
        (lambda s: s.sample((1, 2), weights=(1, -1)), "give each choice one, not all of them 0"),
        (lambda s: (s.sample((1, 2), name="x"), s.sample((1, 2), name="x")), "there is a sample 'x' already"),
        (lambda s: s.sample_tile(s.stage("C")["i"], 0), "a tile has from 1 to 8 parts"),
        (lambda s: s.sample_tile(s.stage("C")["i"], 2, innermost=(7,), perfect=True), "no tile of loop C.i"),
        (lambda s: s.sample_location("D"), "stage D has no place inside of another one's loops: nothing reads it"),
    ],
)
def test_what_cannot_be_says_why(steps: STEPS, why: str) -> None:
    assert why in refused(steps)


def test_threads_share_loops_of_the_same_iterations_in_every_run() -> None:
    def steps(s: Schedule) -> None:
        c = s.stage("C")
        i0, i1 = s.split(c["i"], [None, 5])
        s.reorder(i1, i0, c["k"], c["j"])
        s.decompose_reduction(c, i0)
        s.parallel((i1, i0))

    assert "loop i0 of stage C is parallel, but has fewer iterations in the last run of another loop over i" in refused(steps)


def test_a_tile_inside_of_a_sampled_loop_cannot_be_perfect() -> None:
    def steps(s: Schedule) -> None:
        _, i1 = s.split(s.stage("C")["i"], s.sample_tile(s.stage("C")["i"], 2))
        s.sample_tile(i1, 2, perfect=True)

    assert "the iterations of loop C.i1 are sampled" in refused(steps)


def test_an_element_wise_stage_may_be_computed_in_a_tile() -> None:
    a = te.placeholder((6, 7), name="A")
    b = te.compute((6, 7), lambda i, j: te.exp(a[i, j]), name="B")

    def steps(s: Schedule) -> None:
        local = s.cache_write("B")
        s.reverse_compute_at("B", local["i"])

    assert "alloc B_local_tile: float32[7]" in loops(steps, Task([a, b], WIDE))


def test_a_tile_of_registers_around_two_sums() -> None:
    def steps(s: Schedule) -> None:
        local = s.cache_write("pool")
        s.reorder(*(local[name] for name in ("z", "y", "b", "ry", "ch", "rx")))
        s.reverse_compute_at("pool", local["rx"])
        s.unroll([local[name] for name in ("ry", "ch", "rx")], max_steps=64)

    assert "pool_local_tile[ch0_1] = max(pool_local_tile[ch0_1]" in loops(steps, Task(workloads.max_pool(1, 3, 9, 9), WIDE))


def test_every_primitive_shows_what_it_makes_of_loops() -> None:
    """Before and after, as code; and the language has the words that outsiders were promised."""
    for primitive in PRIMITIVES.values():
        assert "::" in (inspect.getdoc(primitive) or ""), primitive
    promised = (
        "split fuse reorder inline compute_at reverse_compute_at compute_root cache_read cache_write rfactor parallel vectorize "
        "unroll bind tensorize prefetch pipeline storage_align decompose_reduction sample_tile sample sample_location stage trace"
    )
    assert all(inspect.getdoc(getattr(Schedule, name)) for name in promised.split())
