"""Stochastic schedules with TVM's names, and what is drawn of them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

import ansorlite as al
from ansorlite import te
from ansorlite.errors import ScheduleError
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.printer import text
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.program import lower
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.builders import builder_of, sketches_of
from ansorlite.spaces.metaschedule import RewriteParallelVectorizeUnroll, ScheduleFn, TirSchedule
from ansorlite.task import Task
from ansorlite.te.evaluate import evaluate
from tests import workloads
from tests.targets import WIDE

TASK = Task(workloads.matmul_relu(24, 32, 16), WIDE)


def made(space: ScheduleFn | Callable[[TirSchedule], object], task: Task = TASK) -> tuple[Sketch, ...]:
    return sketches_of(task, builder_of(space if isinstance(space, ScheduleFn) else ScheduleFn(space)))


def lesson(sch: TirSchedule) -> None:
    """``stochastic_schedule_mm`` of the lesson of machine learning compilation, word by word but for the names of blocks."""
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)


def everything(sch: TirSchedule) -> None:
    """What else a lesson's schedules do."""
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2, max_innermost_factor=8))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([4, 8], [0.25, 0.75])])
    k0, k1 = sch.split(k, sch.sample_perfect_tile(k, 2, decision=(4, 4)))
    sch.reorder(i0, j0, k0, i1, k1, j1)
    sch.vectorize(j1)
    sch.unroll(k1)
    sch.parallel(i0)
    sch.reverse_compute_at("D", sch.sample_categorical([0, 1], decision=1) and j0)


@pytest.mark.parametrize(
    "space",
    [
        ScheduleFn(lesson),
        ScheduleFn(everything),
        ScheduleFn(lesson, [RewriteParallelVectorizeUnroll("C")]),
        ScheduleFn(lambda _: None, [RewriteParallelVectorizeUnroll("C"), RewriteParallelVectorizeUnroll("D", 1, 4)]),
    ],
)
def test_what_is_drawn_computes_what_the_task_says_and_is_replayed_to_the_byte(space: ScheduleFn) -> None:
    (sketch,) = made(space)
    rng = np.random.default_rng(0)
    arrays = [rng.random(tensor.shape).astype(tensor.dtype) for tensor in TASK.dag.inputs]
    wanted = evaluate(TASK.dag, arrays)
    for row in TileSpace(sketch).sample(4, rng):
        candidate = sketch.candidate(row)
        function = lower(TASK, candidate)
        outputs = [np.zeros_like(each) for each in wanted]
        interpret(function, [*arrays, *outputs])
        np.testing.assert_allclose(outputs[0], wanted[0], rtol=1e-4, atol=1e-5)
        again = sketch.row_of(Candidate(candidate.trace))
        assert again is not None
        assert sketch.candidate(again) == candidate, "a trace that is read and printed is the same text"
        assert text(lower(TASK, Candidate(candidate.trace))) == text(function)


def test_every_factorisation_is_as_likely_and_candidates_as_they_are_said_to_be() -> None:
    def samples(sch: TirSchedule) -> None:
        i, j, _ = sch.get_loops("C")
        sch.split(i, sch.sample_perfect_tile(i, 3, max_innermost_factor=24))
        sch.split(j, [None, sch.sample_categorical([1, 2, 4], [0.5, 0.3, 0.2])])

    (sketch,) = made(samples)
    tile, choice = sketch.holes
    assert tile.table is not None
    every = {(a, b, 24 // a // b) for a in range(1, 25) for b in range(1, 25) if 24 % (a * b) == 0}
    assert set(map(tuple, tile.table.trips.tolist())) == every
    drawn = TileSpace(sketch).sample(12_000, np.random.default_rng(0))
    counts = Counter(drawn[:, 0].tolist())
    assert chisquare([counts[row] for row in range(tile.size)]).pvalue > 0.001
    counts = Counter(drawn[:, 1].tolist())
    assert chisquare([counts[row] for row in range(choice.size)], [6000, 3600, 2400]).pvalue > 0.001


def test_decisions_that_are_given_are_taken() -> None:
    def decided(sch: TirSchedule) -> None:
        i, j, _ = sch.get_loops("C")
        sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[3, 8]))
        sch.split(j, [None, sch.sample_categorical([4, 8, 16], decision=2)])
        assert sch.sample_compute_location("C", decision=-1) is None
        assert sch.sample_compute_location("C", decision=1) == sch.get_loops("D")[1]
        assert str(sch.trace)

    (sketch,) = made(decided)
    assert sketch.holes == ()
    assert "(3, 8)" in sketch.text
    assert "(None, 16)" in sketch.text


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda sch: sch.get_block("Z"), "Z"),
        (lambda sch: sch.get_block("C", "linear0"), "a task is one function: 'main'"),
        (lambda sch: sch.sample_perfect_tile(sch.get_loops("C")[0], 2, decision=[1, 2, 3]), "decision has 3; give one for each"),
        (lambda sch: sch.sample_categorical([1, 2], decision=5), "decision 5 is no position among the 2 candidates"),
        (lambda sch: sch.sample_categorical([1, 2], [0.5]), "weights"),
        (lambda sch: sch.sample_compute_location("C", decision=9), "decision 9 is no loop"),
        (lambda sch: sch.bind(sch.get_loops("C")[0], "warpIdx.x"), "axes are those of blockIdx, threadIdx, vthread"),
        (lambda sch: sch.cache_write("C", 1, "global"), "it must be 0"),
        (lambda sch: sch.decompose_reduction("C", sch.get_loops("D")[0]), "which is none of"),
        (lambda sch: sch.parallel(sch.get_loops("C")[2]), "cannot be parallel"),
    ],
)
def test_what_is_wrong_is_one_sentence(function: Callable[[TirSchedule], object], why: str) -> None:
    with pytest.raises(ScheduleError, match=why) as caught:
        made(function)
    assert "\n" not in str(caught.value)


def test_the_lesson_is_tuned_and_put_back_among_functions_from_outside(tmp_path: Path) -> None:
    """The second half of the lesson: one function of a program is tuned in a space of its own; the numbers stay."""
    x, w, b = te.placeholder((1, 784), name="x"), te.placeholder((128, 784), name="w"), te.placeholder((128,), name="b")
    k = te.reduce_axis(784, name="k")
    product = te.compute((1, 128), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="C")
    linear0 = al.Task([x, w, b, te.compute((1, 128), lambda i, j: product[i, j] + b[j], name="out")])
    hidden = te.placeholder((1, 128), name="hidden")
    al.register("test.metaschedule.relu", override=True)(lambda x, out: np.maximum(x, 0, out=out))
    module = al.Module(
        {
            "linear0": linear0,
            "relu": al.External("test.metaschedule.relu", inputs=[hidden], outputs=[hidden]),
            "main": lambda call, x, w0, b0: call("relu", call("linear0", x, w0, b0)),
        }
    )
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(kind.shape, dtype=np.float32) for name, kind in module.main.inputs.items()}
    before = al.compile(module)(arrays)
    task, space = module.extract("linear0"), ScheduleFn(lesson)
    result = al.tune(task, space=space, trials=6, database=tmp_path / "t.db", progress=False)
    kernel = al.compile(task, space=space, database=tmp_path / "t.db")
    np.testing.assert_allclose(module.replace("linear0", kernel)(arrays), before, rtol=1e-4, atol=1e-3)
    naive = result.tasks[0].naive
    assert naive is not None
    assert result.tasks[0].best_latency <= naive
