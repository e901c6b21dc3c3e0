"""The draft model of GPUs: a closed-form estimate of a program's time, from its features alone (after Pruner's PSA).

What a block computes, by its threads or by matrix units, and its passes over shared memory keep its multiprocessor busy; how
much of that is hidden depends on the warps that are there to run. What is copied for all threads is waited for, round by round:
by as many blocks at once as there are, and where it is copied ahead, into a ring, over as many rounds as that has slots. Memory
is shared by all; what each multiprocessor takes of it comes in whole sectors, however little of them its threads ask for.
Operands beyond the registers that a thread may have are loaded and stored each time. Each stage takes the longest of them;
launches take their time besides. What each of these costs is read from the GPU's row, ``Target.gpu``, of data sheets or measured;
there is no number of a GPU here. Held against an H100 it ranks fairly (``docs/decisions/first-figures-of-a-gpu.md``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import TargetError
from ansorlite.features.gpu import GPU_COLUMN
from ansorlite.target import Target


class Causes(NamedTuple):
    """(n, statements) each: seconds that a statement takes by cause.

    Attributes:
        issue: of its instructions, if multiprocessors always had some at hand.
        waiting: of those for want of warps.
        units: of what matrix units compute.
        shared: of what it moves to and from shared memory.
        latency: until what it copies for all threads is there.
        memory: of what it moves to and from memory.
        launch: of its launch.
    """

    issue: NDArray[np.float64]
    waiting: NDArray[np.float64]
    units: NDArray[np.float64]
    shared: NDArray[np.float64]
    latency: NDArray[np.float64]
    memory: NDArray[np.float64]
    launch: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """The longest of what happens at once, and the launch."""
        busy = np.maximum(np.maximum(self.issue + self.waiting, self.units), self.shared)
        result: NDArray[np.float64] = np.maximum(busy + self.latency, self.memory) + self.launch
        return result


class GpuDraft:
    """``(n, statements, features)`` to ``(n,)``: minus the natural logarithm of the estimated seconds.

    Raises:
        TargetError: the target is no GPU.
    """

    def __init__(self, target: Target) -> None:
        if target.gpu is None:
            raise TargetError(f"{target.key} is no GPU, so that there is no estimate of its programs for GPUs")
        self._gpu = target.gpu

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        result: NDArray[np.float64] = -np.log(self.seconds(features))
        return result

    def seconds(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) the estimate itself."""
        result: NDArray[np.float64] = np.maximum(self.causes(features).total.sum(axis=1), 1.0 / self._gpu.clock)
        return result

    def causes(self, features: NDArray[np.float64]) -> Causes:
        """What takes how long, statement by statement."""
        gpu = self._gpu

        def magnitude(name: str) -> NDArray[np.float64]:
            result: NDArray[np.float64] = np.exp2(features[:, :, GPU_COLUMN[name]]) - 1.0
            return result

        # Counts are whole again: a wave more or less is decided by them.
        blocks, threads = np.rint(magnitude("blocks")), np.maximum(np.rint(magnitude("threads")), 1.0)
        warps = np.ceil(threads / gpu.warp)
        lanes = warps * gpu.warp
        # As long as two reciprocals: a division is one and ten instructions besides, an exponential some twenty (counted in the
        # machine code of sm_80 and sm_90).
        slow = 2.0 * gpu.lanes / gpu.special * magnitude("slow")
        instructions = magnitude("operations") + slow + magnitude("requests") + magnitude("shared_loads")
        wanted = np.maximum(magnitude("registers"), 1.0)
        # None by the estimate, which is a limit: by what an assembler said of like programs (``features/reported.py``).
        spilled = np.maximum(wanted - gpu.thread_registers, 0.0) / wanted
        issue = (instructions + 2.0 * spilled * magnitude("operations")) * lanes / gpu.lanes
        passes = magnitude("wavefronts") * warps / gpu.wavefronts
        ready = np.minimum(np.maximum(magnitude("resident"), 1.0), np.maximum(blocks / gpu.processors, 1.0)) * warps
        # Each scheduler needs another warp in each cycle until the result of its first one's instruction is there.
        hidden = np.minimum(ready / (gpu.schedulers * gpu.arithmetic_latency), 1.0)
        waves = np.ceil(blocks / gpu.processors)
        units = magnitude("matrix") * lanes / gpu.lanes / np.minimum(ready / gpu.schedulers, 1.0)
        # By each round of what reads memory for all threads; what other blocks do meanwhile, and other rounds, hides it.
        rounds = np.where((magnitude("requests") > 0) & (features[:, :, GPU_COLUMN["launch"]] == 0), magnitude("rounds"), 0.0)
        at_once = np.maximum(ready / warps, 1.0) * np.maximum(magnitude("stages"), 1.0)
        busy = waves / gpu.clock
        # A part of the GPU asks for a part of its bandwidth.
        memory = blocks * magnitude("bytes") / (gpu.bandwidth * np.minimum(blocks / gpu.processors, 1.0))
        memory = np.maximum(memory, busy * magnitude("sectors") * warps / gpu.sectors)
        launch = gpu.launch * features[:, :, GPU_COLUMN["launch"]]
        waiting, latency = busy * issue * (1.0 / hidden - 1.0), busy * rounds * gpu.latency / at_once
        return Causes(busy * issue, waiting, busy * units, busy * passes, latency, memory, launch)
