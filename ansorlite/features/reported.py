"""What an assembler has said of measured programs for GPUs, for the features of all others: how far their registers are off.

Registers are estimated before a program is built. Of one that was built they are known; how many times the estimate that is, is
much alike for all programs of a sketch. So their features have the estimate times what it was on average, and the blocks that a
multiprocessor runs at once follow from that. What a thread spills counts as registers that it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ansorlite.columns.tape import Column
from ansorlite.features.gpu import GPU_COLUMN
from ansorlite.machine.gpu import Gpu
from ansorlite.schedule.nest import Program
from ansorlite.sketch.gpu_limits import most_registers

#: The estimate is believed as so many reports that say the same.
_BELIEVED: Final = 3


@dataclass(frozen=True)
class Reported:
    """The reports of some programs of one sketch.

    Attributes:
        programs: how many.
        logarithms: the sum of the natural logarithms of registers wanted to registers estimated.
    """

    programs: int = 0
    logarithms: float = 0.0

    @property
    def ratio(self) -> float:
        """Of registers wanted to registers estimated; 1 where nothing was reported."""
        return exp(self.logarithms / (self.programs + _BELIEVED))

    def plus(self, program: Program, gpu: Gpu, wanted: float) -> Reported:
        """With what a thread of one more program wants, in the launch that takes most registers."""
        estimated = most_registers(program, gpu)
        assert not isinstance(estimated, Column), "the program of one row has plain numbers"
        return Reported(self.programs + 1, self.logarithms + log(wanted / estimated))

    def corrected(self, features: NDArray[np.float64], gpu: Gpu) -> NDArray[np.float64]:
        """``(n, statements, features)`` with the registers that programs will want, and the blocks that fit at once."""
        if not self.programs:
            return features

        def plain(name: str) -> NDArray[np.float64]:
            result: NDArray[np.float64] = np.exp2(features[:, :, GPU_COLUMN[name]]) - 1.0
            return result

        wanted = plain("registers") * self.ratio
        # What is more than a thread may have is spilled.
        given = np.minimum(wanted, gpu.thread_registers)
        whole = np.ceil(np.maximum(np.rint(plain("threads")), 1.0) / gpu.warp) * gpu.warp
        by_shared = np.floor(gpu.shared / np.maximum(np.rint(plain("shared")), 1.0))
        fitting = np.minimum(np.floor(gpu.registers / (given * whole)), by_shared)
        resident = np.maximum(np.minimum(np.minimum(fitting, np.floor(gpu.threads / whole)), gpu.blocks), 1.0)
        found = features.copy()
        found[:, :, GPU_COLUMN["registers"]] = np.log2(1.0 + wanted)
        found[:, :, GPU_COLUMN["resident"]] = np.log2(1.0 + resident)
        return found
