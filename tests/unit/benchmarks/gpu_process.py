"""What a process of the script for GPUs does before its first case, in tests."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from ansorlite.codegen.nvptx.assemble import ASSEMBLER_VARIABLE
from ansorlite.runtime import device_peaks
from ansorlite.runtime.peaks import MemoryLevel
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import Target
from benchmarks.gpu import models, right, session
from benchmarks.gpu.row import Row
from tests.cupy_stand_in import StandIn
from tests.gpu_programs import SMALL

#: The programs that are checked.
CHECKED: Final = ("by hand: softmax", "matmul bias relu")


def on_a_stand_in() -> None:
    """CuPy's stand-in, whose clock counts blocks."""
    os.environ[ASSEMBLER_VARIABLE] = "driver"
    sys.modules["cupy"] = StandIn().module
    device_peaks._level = lambda _device, _move, name, nbytes: MemoryLevel(name, nbytes, 1e9, 1e9)  # type: ignore[assignment]
    in_a_moment()


def in_a_moment() -> None:
    """Small programs, timed shortly."""
    models.TURN = session.TURN = TimingSettings(min_seconds=0.0, min_repeats=1, repeat_seconds=1e-6)  # type: ignore[misc]
    right.BY_HAND = {"by hand: softmax": SMALL["softmax"]}  # type: ignore[misc]


def _check(name: str, target: Target) -> Row:
    if name == "hangs":
        time.sleep(60)
    if name == "dies":
        os._exit(1)
    wrong = "the GPU is lost" if name == "breaks" else ""
    return Row(right.FAMILY, name, target.key, wrong, reference=str(os.getpid()))


def broken() -> None:
    """What a program is called is what becomes of it."""
    right.check = _check
