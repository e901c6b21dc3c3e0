"""Contracts 1, 2, 4 and 5 for programs of a small GPU; and what is theirs alone: PTX computes the same, within the limits.

Numpy = interpreter, with threads in any order = a CPU in the place of the GPU = the machine for PTX.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import pytest
from hypothesis import given

from ansorlite.loops.kernel_module import kernel_module
from ansorlite.loops.printer import text
from ansorlite.loops.simplify import simplify
from ansorlite.loops.verifier import verify
from ansorlite.sketch.gpu_limits import blocks, shared_bytes, threads
from ansorlite.sketch.program import sketch_of
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, resolve
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import LONG, NAMED, Drawn, budget, computations, named_dag, reproducer, seeds, sketches_of, times
from tests.contracts.test_right_numbers import compiled as on_a_cpu
from tests.contracts.test_right_numbers import interpreted, poisoned
from tests.on_gpu import TARGET, assembled, compiled, launched
from tests.strategies import arrays_for, assert_close

GPU: Final[Target] = resolve("emulated")

#: A few that are unlike each other: what is interpreted thread by thread takes its time.
FEW: Final = (
    "matmul of primes",
    "matmul of ones",
    "batch matmul",
    "convolution strided, grouped",
    "max pool",
    "softmax",
    "layer norm",
    "attention",
    "sum of squares",
    "transpose add",
    "two outputs",
    "matmul bias relu, constant",
    "derived weights",
)
few = pytest.mark.parametrize("name", FEW)


def some_sketches(dag: ComputeDAG, rng: np.random.Generator) -> list[Sketch]:
    found = sketches_of(dag, GPU, rng)
    return [found[i] for i in rng.permutation(len(found))[: times(2)]]


def check_numbers(dag: ComputeDAG, seed: int) -> None:
    """A row of each of some sketches."""
    rng = np.random.default_rng(seed)
    check_rows(dag, some_sketches(dag, rng), 1, rng)


def check_rows(
    dag: ComputeDAG, sketches: Sequence[Sketch], count: int, rng: np.random.Generator, assembler: Target = TARGET
) -> None:
    """Rows of each sketch: right numbers everywhere, and launches of the sizes that the limits speak of.

    Args:
        assembler: what PTX is made for.
    """
    inputs = arrays_for(dag, rng)
    expected = evaluate(dag, inputs)
    for sketch in sketches:
        for row in TileSpace(sketch).sample(count, rng):
            with reproducer(dag, sketch, row):
                function = sketch.lower(row)
                verify(function)
                assert_close(dag, interpreted(dag, function, inputs, rng), expected)
                made = on_a_cpu(dag, function, inputs, sketch.target)
                assert made is not None
                assert_close(dag, made, expected)
                outputs = poisoned(dag)
                kernels = launched(kernel_module(function), [*inputs, *outputs], assembler)
                assert_close(dag, outputs, expected)
                program = sketch.fold(row)
                told = [(blocks(nest), max(1, threads(nest)), shared_bytes(program, nest)) for nest in program.nests]
                assert sorted((kernel.grid, kernel.threads, kernel.shared) for kernel in kernels) == sorted(told)


@few
def test_right_numbers(name: str) -> None:
    check_numbers(named_dag(name), seed=24)


@pytest.mark.parametrize("name", LONG)
def test_long_sums_in_parts(name: str) -> None:
    dag = ComputeDAG.of(LONG[name]())
    cut = [sketch for sketch in derive(Task(dag, GPU)) if "rfactor" in sketch.text]
    assert cut
    check_rows(dag, cut[: times(2)], 1, np.random.default_rng(28))


def test_sums_to_one_element_have_threads() -> None:
    dag, rng = named_dag("sum of squares"), np.random.default_rng(29)
    for sketch in derive(Task(dag, GPU)):
        for row in TileSpace(sketch).sample(4, rng):
            assert all(threads(nest) > 1 for nest in sketch.fold(row).nests)


@few
def test_keys_tell_programs_apart(name: str) -> None:
    dag, rng = named_dag(name), np.random.default_rng(22)
    for sketch in some_sketches(dag, rng):
        space = TileSpace(sketch)
        rows = space.sample(6, rng)
        rows = np.unique(np.concatenate([rows, space.mutate(rows, rng), space.neighbours(rows[0])[:6]]), axis=0)
        rows = rows[space.valid(rows)]
        texts, keys = [text(sketch.lower(row)) for row in rows], [key.tobytes() for key in space.canonical(rows)]
        for number, other in combinations(range(len(rows)), 2):
            with reproducer(dag, sketch, rows[number], rows[other]):
                assert (texts[number] == texts[other]) == (keys[number] == keys[other])


@few
def test_traces_make_the_same_programs_again(name: str) -> None:
    dag, rng = named_dag(name), np.random.default_rng(25)
    for sketch in some_sketches(dag, rng):
        for row in TileSpace(sketch).sample(1, rng):
            candidate = sketch.candidate(row)
            assert text(sketch_of(Task(dag, GPU), candidate).lower(())) == text(sketch.lower(row))
            found = sketch.row_of(candidate)
            assert found is not None
            np.testing.assert_array_equal(sketch.canonical(np.array([found])), sketch.canonical(np.array([row])))


@budget(10)
@given(computations, seeds)
def test_random_computations(drawn: Drawn, seed: int) -> None:
    check_numbers(drawn.dag, seed)


@pytest.mark.parametrize("name", ["matmul bias relu", "softmax", "convolution"])
def test_ptxas_takes_them_without_spills(name: str) -> None:
    rng = np.random.default_rng(26)
    for sketch in some_sketches(named_dag(name), rng):
        for row in TileSpace(sketch).sample(1, rng):
            ptx, _ = compiled(simplify(sketch.lower(row)))
            for report in assembled(ptx, "sm_80").values():
                assert not report.spilled


@pytest.mark.parametrize("name", NAMED)
def test_spaces_have_legal_programs(name: str) -> None:
    rng = np.random.default_rng(27)
    for sketch in sketches_of(named_dag(name), GPU, rng):
        space = TileSpace(sketch)
        assert space.valid(space.sample(64, rng)).all()
