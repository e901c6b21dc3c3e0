"""The draft model: a closed-form estimate of a program's time, from its features alone (after Pruner's PSA, ASPLOS 25).

A statement keeps a core busy with arithmetic, loads and the latency of its accumulators, of which the longest counts; it
waits for the near memory (the second cache, and addresses of pages) and the far one (the third cache and beyond), which
overlaps in part. A program takes the sum of its statements. The constants are for current CPUs: those of the caches and
of pages were fitted to 1,000 programs of 25 computations, the others are the manuals'. The draft ranks programs before
anything has been measured, and the learned model starts from it. ``benchmarks/draft_quality.py`` tells how good it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorlite.features.names import COLUMN
from ansorlite.target import Target


@dataclass(frozen=True)
class MachineConstants:
    """Cycles and bytes a cycle, of one core."""

    arithmetic: float = 0.5  # a vector add, multiply, or both fused
    div: float = 8.0
    math: float = 22.0
    load: float = 0.5
    broadcast: float = 0.65  # a load that goes to all lanes: it comes with an operation, or takes the slot of one
    gather: float = 0.8  # each element of a strided vector
    latency: float = 4.0  # of an addition, in registers
    forwarding: float = 7.0  # of an addition, through memory
    update: float = 2.0  # of an accumulator in memory, where the next one is another
    store: float = 0.5
    branch: float = 1.7
    spill: float = 5.0
    move: float = 1.0  # of an accumulator between registers and its tile
    code: float = 400.0  # statements of straight-line code that still run at full speed
    l2_bytes: float = 64.0
    l3_bytes: float = 8.0
    memory_bytes: float = 5.0
    l2_run: float = 1.0  # the start of a run of lines, which nothing has fetched ahead
    l3_run: float = 14.0
    page: float = 10.0
    near_overlap: float = 0.8  # the share of the shorter of two that is not hidden behind the longer
    far_overlap: float = 0.5
    team: float = 10000.0  # entering and leaving a parallel loop, between a team that is awake and one that sleeps
    clock: float = 2.5e9


class Draft:
    """``(n, statements, features)`` to ``(n,)``: minus the natural logarithm of the estimated seconds."""

    def __init__(self, target: Target, constants: MachineConstants | None = None) -> None:
        self.target = target
        self.constants = constants or MachineConstants()

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        result: NDArray[np.float64] = -np.log(self.seconds(features))
        return result

    def seconds(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) the estimate itself."""
        # By feature, of all statements at once.
        columns = features.transpose(2, 1, 0)
        total = np.zeros(len(features))
        for cycles in self._cycles(columns):
            total += cycles
        regions = np.where(columns[COLUMN["parallel"]] > 1.0, 1.0, 0.0)
        # Most statements that run in parallel share one region.
        total += self.constants.team * (0.75 * regions.max(axis=0, initial=0.0) + 0.25 * regions.sum(axis=0))
        return np.maximum(total, 1.0) / self.constants.clock

    def _cycles(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """(features, statements, n) to (statements, n)."""
        k = self.constants

        def magnitude(name: str) -> NDArray[np.float64]:
            result: NDArray[np.float64] = np.exp2(f[COLUMN[name]])
            result -= 1.0
            return result

        def plain(name: str) -> NDArray[np.float64]:
            result: NDArray[np.float64] = f[COLUMN[name]]
            return result

        iterations, unrolled = magnitude("iterations"), np.maximum(magnitude("unrolled"), 1.0)
        lanes = np.exp2(plain("lanes"))
        steps = iterations / (lanes * plain("lane_use"))
        blocks = steps / unrolled
        # A vector may be wider than a register.
        registers = np.maximum(np.ceil(lanes / self.target.lanes("float32")), 1.0)
        per_step = steps * registers / np.maximum(iterations, 1.0)
        fused = np.maximum(magnitude("cheap"), magnitude("mul"))
        compute = per_step * (fused * k.arithmetic + magnitude("div") * k.div + magnitude("math") * k.math)
        vectors, scalars, strided = magnitude("vector_loads"), magnitude("scalar_loads"), magnitude("strided_loads")
        loading = blocks * (vectors * registers * k.load + scalars * k.broadcast + strided * lanes * k.gather)
        accumulators = np.maximum(magnitude("accumulators"), 1.0)
        accumulates, in_registers = plain("accumulates") > 0, plain("in_registers") > 0
        waiting = np.where(in_registers, steps * k.latency / accumulators, 0.0)
        in_memory = np.where(accumulates, np.where(magnitude("inner_reduce") > 1, k.forwarding, k.update), k.store)
        storing = np.where(in_registers, 0.0, steps * registers * in_memory)
        # Accumulators go back to their tile after as many steps as they live through.
        moving = np.where(in_registers, 2.0 * k.move * steps * registers / np.maximum(magnitude("reduce"), 1.0), 0.0)
        # Of the operands, the few are held beside the accumulators, and the many come from memory one by one.
        held = (accumulators + np.minimum(vectors, scalars + strided)) * registers
        spilled = np.maximum(held - (self.target.vector_registers - 2), 0.0)
        spilling = np.where(in_registers, blocks * spilled * k.spill, 0.0)
        crowded = np.maximum(unrolled * registers / k.code, 1.0)
        busy = np.maximum(np.maximum(compute, loading), waiting) * crowded + storing + moving + spilling
        busy += magnitude("branches") * k.branch
        near = magnitude("l1_traffic") / k.l2_bytes + magnitude("l1_runs") * k.l2_run + magnitude("pages") * k.page
        far = magnitude("l2_traffic") / k.l3_bytes + magnitude("l2_runs") * k.l3_run
        memory = np.where(magnitude("bytes") > self.target.l3, magnitude("l3_traffic") / k.memory_bytes, 0.0)
        threads = np.maximum(plain("balance") * self.target.threads, 1.0)
        own = _overlapping(busy, near, k.near_overlap)
        # Threads share the memory, and one alone cannot use all of it.
        return _overlapping(own / threads, far / threads + memory / np.minimum(threads, 2.0), k.far_overlap)


def _overlapping(a: NDArray[np.float64], b: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    return np.asarray(np.maximum(a, b) + share * np.minimum(a, b))
