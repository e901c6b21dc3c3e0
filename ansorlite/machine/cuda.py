"""NVIDIA GPUs of this machine, as their driver tells of them through CuPy. Nothing here is asked before somebody wants one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

from ansorlite.errors import TargetError
from ansorlite.machine.gpu import BULK_BYTES, MAP_BYTES, Gpu
from ansorlite.machine.kept_gpu import measured
from ansorlite.machine.matrix import AMPERE, HOPPER, SMALL_AMPERE, MatrixUnit

#: Lanes for float32 of one multiprocessor, by compute capability; each does a multiply-add a cycle. CUDA C++ Programming Guide.
_LANES: Final[Mapping[tuple[int, int], int]] = {
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (12, 0): 128,
}
#: LLVM's names of compute capabilities, and the version of PTX that it takes to name them. Machine code runs on a later minor
#: version of its major one, too.
PROCESSORS: Final[Mapping[tuple[int, int], tuple[str, str]]] = {
    (7, 5): ("sm_75", "+ptx80"),
    (8, 0): ("sm_80", "+ptx80"),
    (8, 6): ("sm_86", "+ptx80"),
    (8, 9): ("sm_89", "+ptx80"),
    (9, 0): ("sm_90a", "+ptx80"),
    (10, 0): ("sm_100", "+ptx86"),
    (12, 0): ("sm_120", "+ptx87"),
}

#: The matrix units of those whose code uses some.
_MATRIX: Final[Mapping[tuple[int, int], tuple[MatrixUnit, ...]]] = {
    (8, 0): AMPERE,
    (8, 6): SMALL_AMPERE,
    (8, 9): SMALL_AMPERE,
    (9, 0): HOPPER,
}


def cupy() -> Any:
    """CuPy, which has found a driver and a GPU.

    Raises:
        TargetError: there is no CuPy, no driver, or no GPU.
    """
    try:
        found = importlib.import_module("cupy")
    except ImportError as error:
        raise TargetError(f"programs for CUDA run through CuPy, which is not here ({error}): {_INSTALL}") from None
    try:
        count = found.cuda.runtime.getDeviceCount()
    except found.cuda.runtime.CUDARuntimeError as error:
        raise TargetError(f"there is no NVIDIA GPU here, or no driver for it ({error}); install the driver") from None
    if not count:
        raise TargetError("there is no NVIDIA GPU here; compile for a named one, as h100, or take another target")
    return found


_INSTALL: Final = "pip install 'ansorlite[cuda12]', or with [cuda13] where the driver is of version 580 or newer"


def facts(number: int) -> tuple[Gpu, str, str]:
    """A GPU of this machine; LLVM's name of its kind, and the features that go with that.

    Args:
        number: of the driver's.

    Raises:
        TargetError: it is not here, or of a kind that no code is made for.
    """
    found = cupy()
    runtime = found.cuda.runtime
    count = runtime.getDeviceCount()
    if number >= count:
        raise TargetError(f"there is no GPU number {number}; this machine has {count}, counted from 0")

    def attribute(name: str) -> int:
        return int(runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), number))

    digits = str(found.cuda.Device(number).compute_capability)
    capability = int(digits[:-1]), int(digits[-1])
    known = max((each for each in PROCESSORS if each[0] == capability[0] and each <= capability), default=None)
    name = str(runtime.getDeviceProperties(number)["name"].decode())
    if known is None:
        raise TargetError(
            f"{name} has compute capability {capability[0]}.{capability[1]}; code is made for "
            f"{', '.join(f'{major}.{minor}' for major, minor in PROCESSORS)} and later minor versions"
        )
    processors = attribute("MultiProcessorCount")
    # Both clocks are told in kHz; memory moves two words a clock.
    gpu = Gpu(
        name=name,
        warp=attribute("WarpSize"),
        block_threads=attribute("MaxThreadsPerBlock"),
        block_shared=attribute("MaxSharedMemoryPerBlockOptin"),
        thread_registers=255,
        processors=processors,
        shared=attribute("MaxSharedMemoryPerMultiprocessor"),
        registers=attribute("MaxRegistersPerMultiprocessor"),
        threads=attribute("MaxThreadsPerMultiProcessor"),
        blocks=attribute("MaxBlocksPerMultiprocessor"),
        l2=attribute("L2CacheSize"),
        bandwidth=2e3 * attribute("MemoryClockRate") * attribute("GlobalMemoryBusWidth") / 8,
        flops=2e3 * attribute("ClockRate") * processors * _LANES[known],
        load_bytes=16,
        lanes=_LANES[known],
        async_copies=capability >= (8, 0),
        bulk_bytes=BULK_BYTES if capability >= (9, 0) else 0,
        map_bytes=MAP_BYTES if known == (9, 0) else 0,
        matrix=_MATRIX.get(known, ()),
    )
    return measured(gpu), *PROCESSORS[known]
