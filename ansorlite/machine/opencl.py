"""Devices of this machine that run OpenCL, through pyopencl. Nothing here is asked before somebody wants one."""

from __future__ import annotations

import importlib
import re
from typing import Any, Final

from ansorlite.errors import TargetError
from ansorlite.machine.gpu import Gpu
from ansorlite.machine.kept_gpu import measured

#: Simulators of devices: they tell they are GPUs.
_SIMULATORS: Final = ("Oclgrind",)
#: What the queries do not tell, for whatever has no row of its own.
_REGISTERS: Final = 64
_THREADS: Final = 1024
#: Lanes for each that begins special functions.
_LANES_OF_SPECIAL: Final = 4


def pyopencl() -> Any:
    """Raises:
    TargetError: it is not installed, or finds no OpenCL.
    """
    try:
        return importlib.import_module("pyopencl")
    except ImportError as error:
        raise TargetError(
            f"programs for OpenCL run through pyopencl, which is not here ({error}): pip install 'ansorlite[opencl]'"
        ) from None


def devices() -> list[Any]:
    """Those of all drivers: GPUs, then others, simulators last; else in the drivers' order.

    Raises:
        TargetError: there is none.
    """
    cl = pyopencl()
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise TargetError(f"OpenCL finds no device here ({error}); install a driver, as pocl-binary-distribution") from None
    if not found:
        raise TargetError("OpenCL finds no device here; install a driver, as pocl-binary-distribution")

    def rank(device: Any) -> tuple[bool, bool]:
        simulates = any(name in device.name for name in _SIMULATORS)
        return simulates, not device.type & cl.device_type.GPU

    return sorted(found, key=rank)


def device(number: int) -> Any:
    """
    Args:
        number: among :func:`devices`.

    Raises:
        TargetError: there is no such device.
    """
    found = devices()
    if number >= len(found):
        raise TargetError(f"there is no OpenCL device number {number}; this machine has {len(found)}, counted from 0")
    return found[number]


def facts(number: int) -> Gpu:
    """What a device tells of itself. Bandwidth and speed it does not tell: those are guesses from its clock.

    Raises:
        TargetError: there is no such device.
    """
    found = device(number)
    processors, clock = int(found.max_compute_units), 1e6 * float(found.max_clock_frequency or 1000)
    lanes = 32 if found.type & pyopencl().device_type.GPU else 8
    gpu = Gpu(
        name=re.sub(r"\s+", " ", found.name).strip(),
        warp=lanes,
        block_threads=int(found.max_work_group_size),
        block_shared=int(found.local_mem_size),
        thread_registers=_REGISTERS,
        processors=processors,
        shared=int(found.local_mem_size),
        registers=_REGISTERS * _THREADS,
        threads=max(_THREADS, int(found.max_work_group_size)),
        blocks=_THREADS // lanes,
        l2=int(found.global_mem_cache_size) or 1 << 20,
        bandwidth=clock * processors * lanes,
        flops=2 * clock * processors * lanes,
        load_bytes=16,
        lanes=lanes,
        special=lanes / _LANES_OF_SPECIAL,
        async_copies=False,
    )
    return measured(gpu)
