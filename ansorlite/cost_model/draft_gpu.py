"""The draft model of GPUs: a closed-form estimate of a program's time, from its features alone (after Pruner's PSA).

What a block computes, and what it takes from shared memory, keeps its multiprocessor busy; how much of that is hidden depends on
the warps that are there to run. Memory is shared by all. Each stage takes the longest of the three; launches take their time
besides. There is no number of a GPU here: those are of its data sheet (``machine/gpu.py``). It has not been held against a GPU.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansorlite.errors import TargetError
from ansorlite.features.gpu import GPU_COLUMN
from ansorlite.target import Target

#: Seconds of one launch (CUDA C++ Best Practices: a few microseconds).
_LAUNCH: Final = 3e-6
#: Warps whose instructions a multiprocessor needs at hand to always have one to run: four schedulers, four cycles of latency.
_WARPS: Final = 16
#: Words that the shared memory of a multiprocessor gives per cycle.
_BANKS: Final = 32
#: Cycles of the lanes of a division, an exponential, or such, in cycles of an addition (special units are a quarter as wide).
_SLOW: Final = 8.0


class Causes(NamedTuple):
    """(n, statements) each: seconds that a statement takes by cause.

    Attributes:
        issue: of its instructions, if multiprocessors always had some at hand.
        waiting: of those for want of warps.
        shared: of what it moves to and from shared memory.
        memory: of what it moves to and from memory.
        launch: of its launch.
    """

    issue: NDArray[np.float64]
    waiting: NDArray[np.float64]
    shared: NDArray[np.float64]
    memory: NDArray[np.float64]
    launch: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """The longest of what happens at once, and the launch."""
        result: NDArray[np.float64] = np.maximum(np.maximum(self.issue + self.waiting, self.shared), self.memory) + self.launch
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
        result: NDArray[np.float64] = np.maximum(self.causes(features).total.sum(axis=1), 1e-9)
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
        # One multiprocessor, per cycle, in operations of a thread; flops counts a product and an addition as two.
        clock = gpu.flops / (2.0 * gpu.processors * gpu.lanes)
        lanes = warps * gpu.warp
        instructions = magnitude("operations") + _SLOW * magnitude("slow") + magnitude("requests") + magnitude("shared_loads")
        issue = instructions * lanes / gpu.lanes
        words = magnitude("shared_words") * lanes / _BANKS
        ready = np.minimum(np.maximum(magnitude("resident"), 1.0), np.maximum(blocks / gpu.processors, 1.0)) * warps
        hidden = np.minimum(ready / _WARPS, 1.0)
        waves = np.ceil(blocks / gpu.processors)
        busy = waves / clock
        # A part of the GPU asks for a part of its bandwidth.
        memory = blocks * magnitude("bytes") / (gpu.bandwidth * np.minimum(blocks / gpu.processors, 1.0))
        launch = _LAUNCH * features[:, :, GPU_COLUMN["launch"]]
        return Causes(busy * issue, busy * issue * (1.0 / hidden - 1.0), busy * words, memory, launch)
