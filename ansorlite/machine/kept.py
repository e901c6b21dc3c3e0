"""What was measured of this machine, kept in the user's folder for caches under the processor's name."""

from __future__ import annotations

import json
import re
from functools import cache

from ansorlite import processor, visible
from ansorlite.cache.disk import default_cache
from ansorlite.errors import CalibrationError
from ansorlite.machine.constants import MachineConstants
from ansorlite.machine.families import shipped

_log = visible.logger(__name__)


def machine_of(cpu: str, features: str, vector_bytes: int) -> MachineConstants:
    """The constants of this machine as ``cpu``, LLVM's name of a processor, with its features: measured, else shipped ones."""
    return kept(cpu) or shipped(cpu, features, vector_bytes)


@cache
def kept(cpu: str) -> MachineConstants | None:
    """What ``ansorlite calibrate`` has measured of this machine; read once. What is damaged is left aside, and said."""
    data = default_cache().get(_key(cpu))
    if data is None:
        return None
    try:
        return MachineConstants.of(json.loads(data))
    except (CalibrationError, ValueError, AttributeError) as error:
        _log.warning("what was measured of this machine cannot be used (%s); run `ansorlite calibrate` again", error)
        return None


def keep(cpu: str, machine: MachineConstants) -> None:
    """Keep what was measured; targets made from now on have it."""
    default_cache().put(_key(cpu), json.dumps(machine.as_dict()).encode())
    kept.cache_clear()


def _key(cpu: str) -> str:
    """A file's name that tells the processor."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", f"machine-{processor.name()}-{cpu}").lower()
