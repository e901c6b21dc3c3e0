"""What a GPU does of what its data sheet says, measured with programs of our own (``gpu_programs.py``): a minute at most.

Each rate follows from what a program takes beyond a launch, which is what a copy of nearly nothing takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ansorlite.calibration import gpu_programs as programs
from ansorlite.calibration.gpu_programs import Sizes
from ansorlite.errors import CalibrationError
from ansorlite.loops.nodes import Function
from ansorlite.machine.gpu import SECTOR
from ansorlite.machine.kept_gpu import GpuRates
from ansorlite.platforms import build
from ansorlite.programs.kernels import kernel_on
from ansorlite.runtime.timing import TimingSettings
from ansorlite.target import Target

#: Bytes of runs that are tried.
_RUNS: Final = (64, 128, 256, 512, 1024)
_TIMING: Final = TimingSettings(min_seconds=0.05, min_repeats=5)
#: How long a GPU that has rested is given to come up to its clock: an H100 rests at 345 MHz, and works at 1980.
_WARMING: Final = TimingSettings(min_seconds=0.5, min_repeats=5)


def calibrate_gpu(target: Target, sizes: Sizes | None = None, say: Callable[[str], None] = lambda _: None) -> GpuRates:
    """Measure ``target``, a GPU of this machine.

    Args:
        sizes: of the programs.
        say: is told what is being measured.

    Raises:
        CalibrationError: it cannot be measured.
        TargetError, MemoryLimitError: it is not here, or has no room.
    """
    gpu = target.gpu
    if gpu is None:
        raise CalibrationError(f"{target.key} is no GPU")
    sizes = sizes or Sizes.of(gpu)

    def beyond(function: Function, given: np.ndarray[Any, Any] | None = None, settings: TimingSettings | None = None) -> float:
        """Seconds that a program takes besides being launched."""
        seconds = _seconds(target, function, given, settings)
        if seconds <= launch:
            raise CalibrationError("a program took no longer than its launch; calibrate again when nothing else runs on the GPU")
        return seconds - launch

    def copied(elements: int) -> float:
        """Bytes a second, both ways counted."""
        at_once = sizes.threads * programs.LANES
        whole = elements // at_once * at_once
        return 2.0 * 4 * whole / beyond(programs.copy(whole, sizes.threads))

    say("nothing yet, until clocks are up")
    _seconds(target, programs.multiply_adds(sizes), settings=_WARMING)
    say("launches")
    launch = _seconds(target, programs.copy(programs.LANES, 1))
    say("memory")
    bandwidth = copied(sizes.memory)
    say("the cache that all share")
    cached = copied(sizes.cache)
    say("multiply-adds")
    flops = 2.0 * sizes.work / beyond(programs.multiply_adds(sizes))
    clock = replace(gpu, flops=flops).clock
    per_cycle = gpu.processors * clock
    say("shared memory")
    words = sizes.work / beyond(programs.shared_loads(sizes)) / per_cycle
    say("how long a load takes")
    chain = programs.chain(sizes.memory * 4)
    cold = replace(_TIMING, flush_bytes=2 * gpu.l2)
    latency = beyond(programs.chase(chain.size, sizes.steps), chain, cold) / sizes.steps * clock
    say("sectors")
    sectors = sizes.work * SECTOR / beyond(programs.sector_loads(sizes)) / per_cycle
    say("bulk copies")
    bulk = _worth_it({nbytes: _of_runs(target, nbytes, sizes) for nbytes in _RUNS}) if gpu.bulk_bytes else 0
    return GpuRates(bandwidth, flops, launch, words, cached, latency, sectors, bulk)


def _seconds(
    target: Target, function: Function, given: np.ndarray[Any, Any] | None = None, settings: TimingSettings | None = None
) -> float:
    """Of one call on an array: on ones where none is given."""
    kernel = kernel_on(build(function, target), function.params, target, None)
    array = np.ones(function.params[0].shape, np.float32) if given is None else given
    return kernel.benchmark(array, settings=settings or _TIMING).median


def _of_runs(target: Target, nbytes: int, sizes: Sizes) -> tuple[float, float]:
    """Seconds that copies of such runs take: past the registers, and in bulk."""
    assert target.gpu is not None
    function = programs.copies_ahead(nbytes, sizes)
    singly, bulk = (_seconds(replace(target, gpu=replace(target.gpu, bulk_bytes=least)), function) for least in (0, nbytes))
    return singly, bulk


def _worth_it(found: Mapping[int, tuple[float, float]]) -> int:
    """From how many bytes on bulk copies take no longer than others; more than were tried where they always do."""
    least = 2 * max(found)
    for nbytes in sorted(found, reverse=True):
        singly, bulk = found[nbytes]
        if bulk > singly:
            break
        least = nbytes
    return least
