"""What a board says of itself. It is sent there as source, with ``ansorlite.processor``; needs nothing but Python."""

from __future__ import annotations

import importlib.util
import os
import platform
from importlib.metadata import PackageNotFoundError, version

from ansorlite import processor

_LEVELS = (1, 2, 3)


def facts() -> dict[str, object]:
    """Words and numbers: what runs there, how much of it, and with what."""
    return {
        "architecture": processor.ARCHITECTURE,
        "name": processor.name(),
        "sets": sorted(processor.sets()),
        "cores": len(os.sched_getaffinity(0)),
        "caches": [processor.cache_bytes(level, 0) for level in _LEVELS],
        "sve_bytes": processor.sve_bytes() or 0,
        "python": platform.python_version(),
        "numpy": _numpy(),
    }


def _numpy() -> str:
    """Its version; empty if it is not there."""
    try:
        return version("numpy") if importlib.util.find_spec("numpy") else ""
    except PackageNotFoundError:
        return ""
