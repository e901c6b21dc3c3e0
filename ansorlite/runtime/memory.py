"""Whether this machine has the memory that a computation needs: known before any of it is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Final

from ansorlite.errors import MemoryLimitError

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def check_fits(parts: Mapping[str, int]) -> None:
    """
    Args:
        parts: what needs how many bytes, all of them at the same time.

    Raises:
        MemoryLimitError: it is more than all memory of this machine.
    """
    needed = sum(parts.values())
    if needed > machine_bytes():
        largest = max(parts, key=lambda name: parts[name])
        share = "" if in_units(parts[largest]) == in_units(needed) else f", {in_units(parts[largest])} of it"
        raise MemoryLimitError(
            f"this needs {in_units(needed)} of memory{share} for {largest}, and the machine has {in_units(machine_bytes())}; "
            "make the shapes smaller, or split the computation"
        )


def no_room(what: str, nbytes: int) -> MemoryLimitError:
    """The error where an allocation has failed all the same."""
    return MemoryLimitError(
        f"there is no memory left for {what}, which needs {in_units(nbytes)}; free some, or make the shapes smaller"
    )


@cache
def machine_bytes() -> int:
    """All memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # psutil says the same, but takes as long as all the rest


def in_units(nbytes: int) -> str:
    """
    >>> in_units(200_000**2 * 4)
    '149 GiB'
    >>> in_units(1536)
    '1.5 KiB'
    """
    value, unit = float(nbytes), 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    return f"{value:.3g} {_UNITS[unit]}" if value < 1000 else f"{value:.0f} {_UNITS[unit]}"
