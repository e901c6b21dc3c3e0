"""Every way to compute a plan, against the oracle: the numpy meaning, interpreted programs, compiled ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from ansorlite.errors import ProgramSizeError
from ansorlite.loops.arguments import argument
from ansorlite.loops.interpreter import interpret
from ansorlite.loops.nodes import Function
from ansorlite.loops.verifier import verify
from ansorlite.platforms import build
from ansorlite.search.default import default_candidate
from ansorlite.sketch.candidate import NAIVE
from ansorlite.sketch.program import lower
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target, host
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from ansorlite.te.serialize import dump, load
from tests.fuzz.computations import oracle
from tests.fuzz.computations.drawing import arrays
from tests.fuzz.computations.oracle import Array
from tests.fuzz.computations.plan import Plan
from tests.fuzz.computations.translation import translated
from tests.running import kernel
from tests.targets import NARROW, WIDE

HOST: Final = host(threads=2)
#: What sketches are derived for. Any machine can run what they describe.
MACHINES: Final = (HOST, WIDE, NARROW)
#: Rows that are interpreted beside the default one.
ROWS: Final = 2


class MismatchError(AssertionError):
    """A way to compute a plan gave something else than the oracle, or failed.

    Attributes:
        way: which.
    """

    def __init__(self, way: str, what: str) -> None:
        super().__init__(f"{way}: {what}")
        self.way = way


def compiled(dag: ComputeDAG, function: Function, inputs: Sequence[Array], target: Target) -> list[Array] | None:
    """The outputs of a program as machine code; ``None`` where that cannot run here."""
    outputs = poisoned(dag)
    params = [argument(tensor) for tensor in (*dag.inputs, *dag.outputs)]
    loaded = kernel(build(function, target), params, target)
    if loaded is None:
        return None
    loaded.bind(*inputs, *outputs)()
    return outputs


def interpreted(dag: ComputeDAG, function: Function, inputs: Sequence[Array], reorder: np.random.Generator | None) -> list[Array]:
    outputs = poisoned(dag)
    interpret(function, [*inputs, *outputs], reorder=reorder)
    return outputs


def poisoned(dag: ComputeDAG) -> list[Array]:
    """Arrays for the outputs that show what has not been written."""
    kinds = [oracle.NUMPY[tensor.dtype] for tensor in dag.outputs]
    return [
        np.full(tensor.shape, np.nan if tensor.dtype in oracle.FLOATS else 77).astype(kind)
        for tensor, kind in zip(dag.outputs, kinds, strict=True)
    ]


def check(plan: Plan) -> float:
    """Compute ``plan`` in every way.

    Returns:
        the share of the outputs' elements that the oracle knows.

    Raises:
        MismatchError: something differs, or is refused, or fails.
    """
    inputs = arrays(plan)
    with np.errstate(all="ignore"):
        expected = oracle.evaluate(plan, inputs)

    @contextmanager
    def way(name: str) -> Iterator[None]:
        try:
            yield
        except MismatchError as error:
            raise MismatchError(name, str(error.args[0])) from None
        except Exception as error:
            raise MismatchError(name, f"{type(error).__name__}: {error}") from error

    def compare(found: Sequence[Array]) -> None:
        for name, want, got in zip(plan.outputs, expected, found, strict=True):
            wrong = oracle.difference(want, got)
            if wrong:
                raise MismatchError(name, wrong)

    with way("te"):
        dag = translated(plan)
    with way("numpy meaning"):
        compare(evaluate(dag, inputs))
    with way("written and read"):
        again = load(json.loads(json.dumps(dump(dag))))
        if again.key != dag.key:
            raise MismatchError("key", f"{again.key} instead of {dag.key}")
    rng = np.random.default_rng(plan.seed)
    task = Task(dag, MACHINES[int(rng.integers(len(MACHINES)))])
    with way("derivation"):
        sketches = derive(task)
        candidates = {"naive": NAIVE, "default": default_candidate(task, sketches)}
        for number in range(ROWS):
            sketch = sketches[int(rng.integers(len(sketches)))]
            row = TileSpace(sketch).sample(1, rng)[0]
            candidates[f"row {number}"] = sketch.candidate(row)
    for name, candidate in candidates.items():
        with way(f"{name} {candidate.trace} for {task.target.key}, lowered"):
            function = lower(task, candidate)
            verify(function)
        with way(f"{name} {candidate.trace} for {task.target.key}, interpreted"):
            compare(interpreted(dag, function, inputs, rng if name == "row 0" else None))
        if name in ("default", "row 0"):
            with way(f"{name} {candidate.trace} for {task.target.key}, compiled"):
                try:
                    found = compiled(dag, function, inputs, HOST)
                except ProgramSizeError:
                    # What was derived for another machine may be too large for one that computes float16 by integers.
                    if task.target is HOST:
                        raise
                    found = None
                if found is not None:
                    compare(found)
    values = [value for tensor in expected for value in tensor.values]
    return sum(not isinstance(value, oracle.Unknown) for value in values) / len(values)
