"""The draft model: a closed-form estimate of a program's time, from its features alone (after Pruner's PSA, ASPLOS 25).

A statement takes as long as the busiest of what it keeps busy: arithmetic, loads, the latency of its accumulators, and
each level of memory; a program takes the sum of its statements. The constants are rough figures for current CPUs. The
draft ranks programs before anything has been measured, and the learned model starts from it.
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
    gather: float = 1.0  # each element of a strided vector
    latency: float = 4.0  # of an addition, in registers
    forwarding: float = 9.0  # of an addition, through memory
    store: float = 1.0
    branch: float = 1.2
    spill: float = 1.5
    move: float = 1.0  # of an accumulator between registers and its tile
    code: float = 160.0  # statements of straight-line code that still run at full speed
    l2_bytes: float = 32.0
    l3_bytes: float = 10.0
    memory_bytes: float = 4.0
    team: float = 5000.0  # entering and leaving a parallel loop
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
        total = np.zeros(len(features))
        for statement in range(features.shape[1]):
            total += self._cycles(features[:, statement, :])
        return np.maximum(total, 1.0) / self.constants.clock

    def _cycles(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        k = self.constants

        def magnitude(name: str) -> NDArray[np.float64]:
            return np.asarray(np.exp2(f[:, COLUMN[name]]) - 1.0)

        def plain(name: str) -> NDArray[np.float64]:
            return f[:, COLUMN[name]]

        iterations, unrolled = magnitude("iterations"), np.maximum(magnitude("unrolled"), 1.0)
        lanes = np.exp2(plain("lanes"))
        steps = iterations / (lanes * plain("lane_use"))
        blocks = steps / unrolled
        per_step = steps / np.maximum(iterations, 1.0)
        fused = np.maximum(magnitude("cheap"), magnitude("mul"))
        compute = per_step * (fused * k.arithmetic + magnitude("div") * k.div + magnitude("math") * k.math)
        loads = magnitude("vector_loads") + magnitude("scalar_loads")
        loading = blocks * (loads * k.load + magnitude("strided_loads") * lanes * k.gather)
        accumulators = np.maximum(magnitude("accumulators"), 1.0)
        accumulates, in_registers = plain("accumulates") > 0, plain("in_registers") > 0
        chain = np.where(magnitude("inner_reduce") > 1, k.forwarding, k.store)
        waiting = np.where(accumulates, np.where(in_registers, steps * k.latency / accumulators, steps * chain), 0.0)
        room = self.target.vector_registers - 3
        # Accumulators go back to their tile after as many steps as they live through.
        moving = np.where(in_registers, 2.0 * k.move * steps / np.maximum(magnitude("reduce"), 1.0), 0.0)
        spilling = np.where(in_registers, blocks * np.maximum(accumulators - room, 0.0) * k.spill, 0.0)
        crowded = np.maximum(unrolled / k.code, 1.0)
        busy = np.maximum(np.maximum(compute, loading), waiting) * crowded + moving + spilling + magnitude("branches") * k.branch
        near = magnitude("l1_traffic") / k.l2_bytes + magnitude("l2_traffic") / k.l3_bytes
        far = magnitude("l3_traffic") / k.memory_bytes
        own = np.maximum(busy, near) + 0.3 * np.minimum(busy, near)
        threads = np.maximum(plain("balance") * self.target.threads, 1.0)
        parallel = magnitude("parallel") > 1
        # Threads share the memory, and one alone cannot use all of it.
        return np.asarray(np.maximum(own / threads, far / np.minimum(threads, 1.5)) + np.where(parallel, k.team, 0.0))
