"""Whether two machines are equally fast: a product of matrices and a copy, which the builder compiles and each machine times.

A machine says nothing of itself that could be compared: a board has no compiler, and what a processor is called does not say how
fast it is clocked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ansorlite import search, te
from ansorlite.errors import TuningError
from ansorlite.measure.roles import Artifact, Builder, Failure, Runner
from ansorlite.records.measurement import Outcome
from ansorlite.spaces.derivation import derive
from ansorlite.target import Target
from ansorlite.task import Task

#: Rows and columns of the matrices: in the second cache of any machine.
_SIDE: Final = 192
#: What is copied lies beyond the last cache so many times.
_BEYOND: Final = 2
#: But takes no more bytes than this: a virtual machine is told of a cache that it shares with many others.
_LARGEST: Final = 64 << 20
#: Each is timed so often, and the best counts: whatever else runs on a machine can only slow it.
_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Speeds:
    """Of one machine.

    Attributes:
        flops: float32 operations a second, of a good product of matrices.
        bandwidth: bytes a second, read and written, of a copy.
    """

    flops: float
    bandwidth: float


def speeds_of(runner: Runner, builder: Builder, target: Target) -> Speeds:
    """What a machine can do.

    Raises:
        TuningError: the programs do not run.
        LostError: the machine is gone.
    """
    product, copy = _product(target), _copy(target)
    latencies = [_latency(runner, builder, task) for task in (product, copy)]
    nbytes = 4 * sum(math.prod(tensor.shape) for tensor in (*copy.dag.inputs, *copy.dag.outputs))
    return Speeds(product.dag.flops / latencies[0], nbytes / latencies[1])


def difference(first: Speeds, other: Speeds, alike: float) -> str:
    """How another machine differs from the first, as a sentence; empty if it does not.

    Args:
        alike: factor within which peaks are equal.
    """
    said = []
    for name, unit, a, b in (
        ("computes", "GFLOP/s", first.flops, other.flops),
        ("copies", "GB/s", first.bandwidth, other.bandwidth),
    ):
        if not 1 / alike <= b / a <= alike:
            said.append(f"it {name} with {b / 1e9:.1f} {unit}, and the first machine with {a / 1e9:.1f}")
    return "; ".join(said)


def _latency(runner: Runner, builder: Builder, task: Task) -> float:
    (program,) = builder.build(task, [search.default_candidate(task, derive(task))])
    if isinstance(program, Failure):
        raise TuningError(f"the program that machines are compared by does not compile: {program.verdict.error}")
    return min(_once(runner, task, program) for _ in range(_ATTEMPTS))


def _once(runner: Runner, task: Task, program: Artifact) -> float:
    (ran,) = runner.run(task, [program], None)
    if ran.verdict.outcome is not Outcome.OK or ran.latency is None:
        raise TuningError(
            f"the program that machines are compared by does not run on {runner.machine or 'this machine'}: {ran.verdict.error}"
        )
    return ran.latency


def _product(target: Target) -> Task:
    a, b = (te.placeholder((_SIDE, _SIDE), name=name) for name in "AB")
    k = te.reduce_axis(_SIDE, name="k")
    return Task([a, b, te.compute((_SIDE, _SIDE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], target)


def _copy(target: Target) -> Task:
    rows = max(1, min(_BEYOND * max(target.l3, target.l2), _LARGEST) // 4 // 1024)
    a = te.placeholder((rows, 1024), name="A")
    return Task([a, te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="B")], target)
