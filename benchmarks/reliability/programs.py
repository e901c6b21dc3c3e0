"""Random rows of random computations: interpreted against the numpy meaning, compiled against the interpreter.

An attempt takes :data:`COMPUTATIONS` random computations of ``tests/strategies.py`` and one named one of the contracts,
derives the sketches of each for one of three machines, and draws rows of each: the extremes and random ones, none of the same
program as another. Each program is verified, and interpreted on two sets of inputs: loops in order, then parallel loops shuffled
and lanes in lockstep. What is compiled must agree with the latter. A check is one program on one set of inputs.
"""

from __future__ import annotations

import gc
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from ansorlite.loops.arguments import argument
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Function
from ansorlite.loops.verifier import verify
from ansorlite.platforms import build
from ansorlite.runtime.kernel import Kernel
from ansorlite.sketch.sketch import Sketch
from ansorlite.target import Target, host
from ansorlite.te import dtypes
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from benchmarks.reliability.results import Attempt, Findings
from tests.contracts.cases import NAMED, Rows, named_dag, reproducer, sketches_of, some_rows
from tests.strategies import Array, arrays_for, assert_close, dags, points
from tests.targets import NARROW, WIDE

#: Kinds of checks.
PROGRAMS: Final = "programs"
INTERPRETED: Final = "interpreted"
COMPILED: Final = "compiled"

#: Random computations of an attempt.
COMPUTATIONS: Final = 150
#: Rows of a sketch: fewer of a large computation, where the interpreter takes long.
_MOST_ROWS: Final = 32
_POINTS: Final = 1200
#: Failures of one attempt that are described; the rest are like them.
_MOST_FAILURES: Final = 5


def attempt_with(share: float, computations: int = COMPUTATIONS) -> Attempt:
    """An attempt that compiles so many programs for each check by the interpreter."""
    return partial(_attempt, share=share, computations=computations)


def _attempt(number: int, _: Path, share: float, computations: int) -> Findings:
    # What is imported by now stays: looking at it again and again for garbage takes a fifth of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    rng = np.random.default_rng(number)
    here = host(threads=2)
    named = named_dag(list(NAMED)[number % len(NAMED)])
    counts: Counter[str] = Counter()
    failures: list[str] = []
    for position, dag in enumerate([named, *_drawn(number, computations)]):
        try:
            for kind in _checks(dag, (WIDE, NARROW, here)[position % 3], here, share, rng):
                counts[kind] += 1
        except Exception:
            failures.append(f"attempt {number}, computation {position}:\n{traceback.format_exc()}")
    if len(failures) > _MOST_FAILURES:
        failures[_MOST_FAILURES:] = [f"attempt {number}: {len(failures) - _MOST_FAILURES} computations more"]
    return Findings(counts, tuple(failures), {"computations": 1.0 + computations})


def _drawn(number: int, count: int) -> list[ComputeDAG]:
    """So many random computations, the same ones for the same number."""
    found: list[ComputeDAG] = []

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(dags())
    def draw(dag: ComputeDAG) -> None:
        found.append(dag)

    draw()
    return found


def _checks(dag: ComputeDAG, target: Target, here: Target, share: float, rng: np.random.Generator) -> Iterator[str]:
    """The kind of each check, once it has been made.

    Raises:
        Exception: one of them failed; its notes say how to see it again.
    """
    ordered, shuffled = ([inputs, evaluate(dag, inputs)] for inputs in (arrays_for(dag, rng), arrays_for(dag, rng)))
    most = int(np.clip(_POINTS // max(1, points(dag)), 2, _MOST_ROWS))
    for sketch in sketches_of(dag, target, rng):
        for row in rng.permutation(_distinct(sketch, some_rows(sketch, most, rng)))[:most]:
            with reproducer(dag, sketch, row):
                function = sketch.lower(row)
                verify(function)
            yield PROGRAMS
            for (inputs, expected), order in ((ordered, None), (shuffled, rng)):
                with reproducer(dag, sketch, row):
                    found = _interpreted(dag, function, inputs, order)
                    assert_close(dag, found, expected)
                yield INTERPRETED
            if rng.random() < 2 * share:
                with reproducer(dag, sketch, row):
                    assert_close(dag, _compiled(dag, function, inputs, here), found)
                yield COMPILED


def _distinct(sketch: Sketch, rows: Rows) -> Rows:
    """One row of each program."""
    _, first = np.unique(sketch.canonical(rows), axis=0, return_index=True)
    return rows[first]


def _unwritten(dag: ComputeDAG) -> list[Array]:
    """Outputs that show what has not been written."""
    return [np.full(t.shape, np.nan if dtypes.is_float(t.dtype) else 77).astype(dtypes.NUMPY[t.dtype]) for t in dag.outputs]


def _interpreted(
    dag: ComputeDAG, function: Function, inputs: Sequence[Array], reorder: np.random.Generator | None
) -> list[Array]:
    outputs = _unwritten(dag)
    interpret(function, [*inputs, *outputs], reorder=reorder)
    return outputs


def _compiled(dag: ComputeDAG, function: Function, inputs: Sequence[Array], target: Target) -> list[Array]:
    """As a user's kernel runs it; constants are prepared by the call."""
    outputs = _unwritten(dag)
    # The schedule may have merged dimensions of an argument; the arrays have the task's.
    params = [argument(t) for t in (*dag.inputs, *dag.outputs)]
    Kernel(build(function, target), params, target)(*inputs, out=outputs)
    return outputs
