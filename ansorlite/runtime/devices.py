"""Which device runs the programs of a platform. A process that only runs what was compiled before needs no more of platforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from ansorlite.errors import TargetError
from ansorlite.runtime.cpu import Cpu
from ansorlite.runtime.cuda import Cuda
from ansorlite.runtime.device import Device
from ansorlite.runtime.opencl import OpenCl
from ansorlite.target import Target

#: By kind and architecture of the target.
DEVICES: Final[Mapping[tuple[str, str], Callable[[Target], Device]]] = {
    ("llvm", "x86_64"): Cpu,
    ("llvm", "aarch64"): Cpu,
    ("emulated", "x86_64"): Cpu,
    ("emulated", "aarch64"): Cpu,
    ("cuda", "nvptx64"): Cuda,
    ("opencl", "spir64"): OpenCl,
}


@lru_cache(maxsize=64)
def device_of(target: Target) -> Device:
    """What programs for ``target`` run on. Whether it is here is found out when one is loaded.

    Raises:
        TargetError: there is no such device.
    """
    if target.platform not in DEVICES:
        known = ", ".join(" ".join(each) for each in DEVICES)
        raise TargetError(f"nothing runs programs of the platform {' '.join(target.platform)}; the platforms are: {known}")
    return DEVICES[target.platform](target)
