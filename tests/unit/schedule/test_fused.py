"""Fused loops: what they are in the loop IR, splits of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from ansorlite.features import extract
from ansorlite.features.population import population_facts
from ansorlite.features.reference import reference
from ansorlite.platforms import finished
from ansorlite.schedule.schedule import Schedule
from ansorlite.schedule.trace_reader import read
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from tests.targets import WIDE
from tests.unit.schedule.test_language import MATMUL_RELU, STEPS, heads, loops, refused


def test_fused_loops_are_one() -> None:
    def steps(s: Schedule) -> None:
        s.fuse(*s.stage("D").axes)

    printed = loops(steps)
    assert "for i0_j0 in 0..240:" in printed
    assert "D[i0_j0 // 20, i0_j0 % 20]" in printed


def test_a_fused_loop_is_split_into_runs_of_the_innermost_loops() -> None:
    def steps(s: Schedule) -> None:
        i, j = s.stage("D").axes
        s.split(s.fuse(i, j), [None, 4, 10])

    # Ten elements of a row, two of these tens and two rows, six times two rows.
    assert heads(loops(steps))[-3:] == ["i0_1 in 0..6", "i1_j0 in 0..4", "j1 in 0..10"]


def test_fused_loops_are_parallel_bound_unrolled_and_fused_again() -> None:
    def steps(s: Schedule) -> None:
        c, d = s.stage("C"), s.stage("D")
        k0, k1 = s.split(c["k"], [3, 3])
        inner = s.fuse(k0, k1)
        s.unroll(inner)
        s.parallel(s.fuse(*c.axes))
        i0, i1 = s.split(d["i"], [None, 3])
        s.bind(s.fuse(s.fuse(i0, i1), d["j"]), "block")

    printed = loops(steps)
    assert "parallel i0_j0 in 0..240:" in printed
    assert "unrolled k0_k1 in 0..9:" in printed
    assert "block i0_i1_j0 in 0..240:" in printed


def test_what_is_computed_in_a_fused_loop_is_made_for_its_iteration() -> None:
    def steps(s: Schedule) -> None:
        d = s.stage("D")
        j0, _ = s.split(d["j"], [5, 4])
        s.compute_at("C", s.fuse(d["i"], j0))

    printed = loops(steps)
    assert "for i0_j0 in 0..60:" in printed
    assert "alloc C: float32[1, 4] in LOCAL" in printed


def test_features_are_those_of_the_fused_loops() -> None:
    s = Schedule(MATMUL_RELU.dag, WIDE)
    c = s.stage("C")
    i, j = c.axes
    i_j = s.fuse(i, j)
    _, inner = s.split(i_j, s.sample_tile(i_j, parts=2, perfect=True))
    s.cache_read(c, "B", at=inner)
    s.parallel(s.fuse(*s.stage("D").axes), depth=s.sample((0, 1)))
    assert str(read(MATMUL_RELU.dag, str(s.trace)).trace) == str(s.trace)
    sketch = Sketch(s.structure, s.trace, WIDE)
    rows = np.array([[number, number % 2] for number in range(sketch.holes[0].size)])
    valid = TileSpace(sketch).valid(rows)
    assert valid.any()
    assert not valid.all()  # 15 of 240 iterations are no whole run of 20
    rows = rows[valid]
    for row, fast in zip(rows, extract(sketch, rows), strict=True):
        names = [facts.name for facts in population_facts(sketch.fold(row))]
        (slow,) = reference(finished(sketch.lower(row), WIDE), names, WIDE)
        np.testing.assert_allclose(fast, slow, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (lambda s: s.fuse(s.stage("C")["i"]), "fuse takes two loops or more"),
        (lambda s: s.fuse(s.stage("C")["i"], s.stage("D")["j"]), "fuse takes loops of one stage"),
        (lambda s: s.fuse(s.stage("C")["i"], s.stage("C")["k"]), "only neighbours are, named from the outermost in; reorder"),
        (lambda s: s.fuse(s.stage("C")["j"], s.stage("C")["k"]), "k adds up, and the others do not"),
        (lambda s: (s.parallel(s.stage("C")["i"]), s.fuse(*s.stage("C").axes)), "cannot be fused after parallel, which names it"),
        (lambda s: (s.fuse(*s.stage("C").axes), s.split(s.stage("C")["i"], [None, 2])), "it was fused into i_j"),
        (lambda s: s.split(s.fuse(*s.stage("D").axes), [None, 15]), "its loops walk whole runs of the innermost parts"),
        (lambda s: s.split(s.fuse(*s.stage("D").axes), [None, 5], tail="cut"), "leave out tail="),
        (lambda s: s.vectorize(s.fuse(*s.stage("D").axes), lanes=4), "is vectorized, but walks several loops of stage D"),
        (lambda s: s.prefetch("D", "C", at=s.fuse(*s.stage("D").axes)), "name a loop that is not fused"),
        (
            lambda s: (s.split(s.fuse(*s.stage("D").axes), [None, 5]), s.unroll(s.stage("D")["i_j"])),
            "it was split into i_j0, i_j1",
        ),
    ],
)
def test_what_cannot_be_fused_says_why(steps: STEPS, why: str) -> None:
    assert why in refused(steps)
