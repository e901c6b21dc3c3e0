"""What was measured of a GPU, kept in the user's folder for caches under the device's whole name."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, replace
from functools import cache

from ansorlite import visible
from ansorlite.cache.disk import default_cache
from ansorlite.errors import CalibrationError
from ansorlite.machine.gpu import Gpu

_log = visible.logger(__name__)


@dataclass(frozen=True)
class GpuRates:
    """Numbers of a :class:`Gpu` that ``ansorlite calibrate`` measures, by its names.

    ``bulk_bytes`` is 0 where there are no bulk copies.
    """

    bandwidth: float
    flops: float
    launch: float
    shared_words: float
    l2_bandwidth: float
    latency: float
    sector_bytes: float
    bulk_bytes: int

    def __post_init__(self) -> None:
        """
        Raises:
            CalibrationError: some are no rates.
        """
        rates = asdict(self)
        bulk = rates.pop("bulk_bytes")
        if type(bulk) is not int or bulk < 0:
            raise CalibrationError(f"bulk_bytes of a GPU is {bulk!r}, not a number of bytes; calibrate again")
        for name, value in rates.items():
            if not isinstance(value, float) or not 0.0 < value < math.inf:
                raise CalibrationError(
                    f"{name} of a GPU is {value!r}, not a number above 0; calibrate again when nothing else runs"
                )

    def of(self, gpu: Gpu) -> Gpu:
        """``gpu`` with these."""
        return replace(gpu, **asdict(self))


def measured(gpu: Gpu) -> Gpu:
    """``gpu`` with what was measured of one of its name on this machine, if something was."""
    found = kept(gpu.name)
    return gpu if found is None else found.of(gpu)


@cache
def kept(name: str) -> GpuRates | None:
    """Read once. What is damaged is left aside, and said."""
    data = default_cache().get(_key(name))
    if data is None:
        return None
    try:
        return GpuRates(**json.loads(data))
    except (CalibrationError, ValueError, TypeError) as error:
        _log.warning("what was measured of this GPU cannot be used (%s); run `ansorlite calibrate --target cuda` again", error)
        return None


def keep(name: str, rates: GpuRates) -> None:
    """Keep what was measured; targets made from now on have it."""
    default_cache().put(_key(name), json.dumps(asdict(rates)).encode())
    kept.cache_clear()


def _key(name: str) -> str:
    """A file's name that tells the GPU."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", f"gpu-{name}").lower()
