"""Contract 4, right numbers: the interpreter on any row equals the numpy meaning; compiled code equals the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given

from ansorlite.loops.arguments import argument
from ansorlite.loops.interpreter import interpret, interpret_module
from ansorlite.loops.nodes import Function
from ansorlite.loops.verifier import verify
from ansorlite.platforms import build, finished
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import Target, host
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from tests.contracts.cases import (
    Drawn,
    budget,
    computations,
    named,
    named_dag,
    reproducer,
    seeds,
    sketches_of,
    some_rows,
    targets,
    times,
)
from tests.running import kernel
from tests.strategies import Array, arrays_for, assert_close
from tests.targets import WIDE

#: What is compiled for: this machine, or the one that ANSORLITE_TARGET names.
HOST = host(threads=2)


def poisoned(dag: ComputeDAG) -> list[Array]:
    """Outputs that show what has not been written."""
    return [np.full(t.shape, np.nan if dtypes.is_float(t.dtype) else 77).astype(dtypes.NUMPY[t.dtype]) for t in dag.outputs]


def interpreted(dag: ComputeDAG, function: Function, inputs: Sequence[Array], rng: np.random.Generator | None) -> list[Array]:
    outputs = poisoned(dag)
    interpret(function, [*inputs, *outputs], reorder=rng)
    return outputs


def finished_and_interpreted(dag: ComputeDAG, function: Function, inputs: Sequence[Array], machine: Target) -> list[Array]:
    """The loops that run, after all passes. What is prepared is interpreted first, with the constants alone; then the rest."""
    module = finished(function, machine)
    for launch in module.launches:
        verify(launch.function)
    outputs = poisoned(dag)
    interpret_module(module, [*inputs, *outputs])
    return outputs


def compiled(dag: ComputeDAG, function: Function, inputs: Sequence[Array], machine: Target = HOST) -> list[Array] | None:
    """What the function compiled for ``machine`` computes; ``None`` where such code cannot run here."""
    outputs = poisoned(dag)
    # The schedule may have merged dimensions of an argument; the arrays have the task's.
    params = [argument(t) for t in (*dag.inputs, *dag.outputs)]
    loaded = kernel(build(function, machine), params, machine)
    if loaded is None:
        return None
    loaded.bind(*inputs, *outputs)()
    constants = {t.name: array for t, array in zip(dag.inputs, inputs, strict=True) if t.constant}
    if constants and isinstance(loaded, Kernel):
        others = [array for t, array in zip(dag.inputs, inputs, strict=True) if not t.constant]
        again = poisoned(dag)
        loaded.prepare(**constants)(*others, out=again)
        for first, second in zip(outputs, again, strict=True):
            np.testing.assert_array_equal(first, second)
    return outputs


def check(dag: ComputeDAG, target: Target, count: int, kernels: int, seed: int, machine: Target = HOST) -> None:
    """Interprets ``count`` rows of every sketch and its extremes, and compiles ``kernels`` of them for ``machine``."""
    rng = np.random.default_rng(seed)
    inputs = arrays_for(dag, rng)
    expected = evaluate(dag, inputs)
    for sketch in sketches_of(dag, target, rng):
        rows = rng.permutation(some_rows(sketch, count, rng))
        for number, row in enumerate(rows):
            with reproducer(dag, sketch, row):
                function = sketch.lower(row)
                # Half of them with parallel loops shuffled, and lanes in lockstep.
                found = interpreted(dag, function, inputs, rng if number % 2 else None)
                assert_close(dag, found, expected)
                if number < kernels or any(tensor.constant for tensor in dag.inputs):
                    for one, other in zip(finished_and_interpreted(dag, function, inputs, target), found, strict=True):
                        np.testing.assert_array_equal(one, other)
                if number < kernels and (made := compiled(dag, function, inputs, machine)) is not None:
                    assert_close(dag, made, found)


@named
def test_named_computations(name: str) -> None:
    check(named_dag(name), WIDE, times(8), times(3), seed=5)


@budget(60)
@given(computations, targets, seeds)
def test_random_computations(drawn: Drawn, target: Target, seed: int) -> None:
    check(drawn.dag, target, 3, 1, seed)
