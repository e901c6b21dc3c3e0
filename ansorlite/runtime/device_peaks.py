"""What a device can do at best, as far as copies within its memory tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ansorlite import lazy
from ansorlite.runtime.device import Device
from ansorlite.runtime.timing import turns_for

if TYPE_CHECKING:
    from ansorlite.runtime import peaks as peaks_of
    from ansorlite.runtime.peaks import MemoryLevel, Peaks
else:
    peaks_of = lazy.module("ansorlite.runtime.peaks")

#: Seconds of one measurement.
_SECONDS: Final = 0.02
_ATTEMPTS: Final = 3


def measured_peaks(device: Device, move: Callable[[int, int, int], None], threads: int) -> Peaks:
    """Of a device with a GPU's facts.

    Args:
        move: copies to an address, from an address, so many bytes.
    """
    gpu = device.target.gpu
    assert gpu is not None
    levels = (_level(device, move, "L2", gpu.l2 // 4), _level(device, move, "memory", 16 * gpu.l2))
    return peaks_of.Peaks(threads, gpu.flops, levels)


def _level(device: Device, move: Callable[[int, int, int], None], name: str, nbytes: int) -> MemoryLevel:
    """By copying half of ``nbytes`` to the other half."""
    memory, half = device.alloc(nbytes), nbytes // 2

    def copy(turns: int) -> None:
        for _ in range(turns):
            move(memory.address + half, memory.address, half)

    turns = turns_for(lambda count: device.time(copy, count), _SECONDS)
    rate = 2 * half * turns / min(device.time(copy, turns) for _ in range(_ATTEMPTS))
    return peaks_of.MemoryLevel(name, nbytes, rate, rate)
