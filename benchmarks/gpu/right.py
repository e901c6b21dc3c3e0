"""Whether programs are right on a device: those written by hand, and random ones of every sketch of many computations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ansorlite.loops.nodes import Function
from ansorlite.measure.check import Checker, tolerance
from ansorlite.measure.inputs import make_inputs
from ansorlite.platforms import build
from ansorlite.programs.kernels import compile_candidate, kernel_on
from ansorlite.sketch.tile_space import TileSpace
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task
from ansorlite.te.dag import ComputeDAG
from ansorlite.te.evaluate import evaluate
from benchmarks.gpu.row import Row, reason
from tests import workloads
from tests.contracts.cases import LONG, NAMED
from tests.gpu_programs import GOLDEN, Program
from tests.products import PRODUCTS, convolution, product

#: Of the rows.
FAMILY: Final = "right"
#: Of those that a sketch draws.
_SEED: Final = 17


def _named(found: Mapping[str, Callable[[], list[object]]], kind: str) -> dict[str, Callable[[], ComputeDAG]]:
    return {f"{kind}{name}": lambda make=make: ComputeDAG.of(make()) for name, make in found.items()}


#: Computations whose programs are drawn. The last ones are large enough for bulk copies and warpgroups.
COMPUTATIONS: Final[Mapping[str, Callable[[], ComputeDAG]]] = {
    **_named(NAMED, ""),
    **_named(LONG, "long "),
    **{f"units: {name}": make for name, make in PRODUCTS.items()},
    "large: float32": lambda: ComputeDAG.of(workloads.matmul_relu(256, 192, 128)),
    "large: float16": lambda: product(256, 192, 128, "float16"),
    "large: bfloat16, transposed": lambda: product(128, 256, 192, "bfloat16", transposed="B"),
    "large: int8": lambda: product(128, 128, 256, "int8", transposed="A"),
    "large: float16, batched": lambda: product(128, 64, 64, "float16", batch=3),
    "large: convolution": lambda: convolution(2, 64, 16, 128, 3, "float16", last=True),
}
#: Programs written by hand, by their names here.
BY_HAND: Final[Mapping[str, Program]] = {f"by hand: {name}": program for name, program in GOLDEN.items()}
NAMES: Final = (*BY_HAND, *COMPUTATIONS)


def check(name: str, target: Target) -> Row:
    """Whether programs of that name are right there."""
    start = time.time()
    try:
        made, wrong = _by_hand(BY_HAND[name], target) if name in BY_HAND else _drawn(COMPUTATIONS[name](), target)
    except Exception as error:
        made, wrong = 0, reason(error)
    return Row(FAMILY, name, target.key, wrong, trials=made, seconds=time.time() - start, reference="numpy", when=start)


def _by_hand(program: Program, target: Target) -> tuple[int, str]:
    function: Function = program.function
    inputs = program.arrays()[: -function.outputs]
    kernel = kernel_on(build(function, target), function.params, target, None)
    np.testing.assert_allclose(kernel(*inputs), program.meaning(*inputs), rtol=1e-5, atol=1e-5)
    return 1, ""


def _drawn(dag: ComputeDAG, target: Target) -> tuple[int, str]:
    """A random program of each sketch: how many there were, and what is wrong with the first that is."""
    task, rng = Task(dag, target), np.random.default_rng(_SEED)
    inputs = make_inputs(dag, rng)
    checker = Checker([tensor.name for tensor in dag.outputs], evaluate(dag, inputs), tolerance(dag))
    candidates = [s.candidate(row) for s in derive(task) for row in TileSpace(s).sample(1, rng)]
    for candidate in candidates:
        found = compile_candidate(task, candidate)(*inputs)
        if wrong := checker.compare(list(found) if isinstance(found, tuple) else [found]):
            return len(candidates), f"{wrong}: {candidate}"
    return len(candidates), ""
