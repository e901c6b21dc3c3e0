"""How a machine knows its own measurements again: each carries a seal that nobody else can make.

A latency says nothing on another machine, and one that came in a file may be a mistake or a lie. A seal is a keyed digest
of what was measured; the key is random, and lies in this user's cache. A database may thus be handed on and come back, by
whatever way: only what was timed here is believed here.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import platform
import secrets
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from ansorlite.cache.disk import Cache, default_cache
from ansorlite.records.measurement import Measurement

#: Under this name the cache keeps the random part of the key. It does not depend on the version: records outlive that.
_ENTRY: Final = "machine"
_KEY_BYTES: Final = 32

#: Hex digits of a seal.
_DIGITS: Final = 32


@dataclass(frozen=True)
class Machine:
    """Makes seals, and tells its own.

    Attributes:
        kept: whether other processes of this user have the same key. Without a cache each has its own, and believes nothing
            that another has measured.
    """

    key: bytes = field(repr=False)
    kept: bool

    def seal(self, task: str, target: str, measurement: Measurement, named: tuple[object, ...] | None = None) -> str:
        """The seal of a measurement of a task (key) on a target (key).

        Args:
            named: what the candidate is told by, if not by its trace: before schema 3 that was a sketch and a row.
        """
        program = (measurement.candidate.trace,) if named is None else named
        facts = (task, target, *program, measurement.outcome.value, measurement.latency)
        # Records that name no machine, or know no peak, have the seals that they had before any did.
        ran: list[object] = [measurement.machine] if measurement.machine else []
        ran += [["peak", measurement.peak]] if measurement.peak else []
        said = json.dumps([*facts, measurement.checked, measurement.when, *ran])
        return hmac.digest(self.key, said.encode(), "sha256").hex()[:_DIGITS]

    def made(self, task: str, target: str, measurement: Measurement, seal: str, named: tuple[object, ...] | None = None) -> bool:
        """Whether ``seal`` is this machine's; ``named`` as for :meth:`seal`."""
        return bool(seal) and hmac.compare_digest(self.seal(task, target, measurement, named).encode(), seal.encode())


def this_machine(kept_in: Cache | None = None) -> Machine:
    """The machine that this process runs on.

    Args:
        kept_in: where the key lies; by default the user's cache.
    """
    place = default_cache() if kept_in is None else kept_in
    token = place.get(_ENTRY)
    if token is None or len(token) != _KEY_BYTES:
        place.put(_ENTRY, secrets.token_bytes(_KEY_BYTES))
        token = place.get(_ENTRY)
    if token is None:
        return Machine(_of_this_process(), kept=False)
    # A home may be shared by machines, and moved to another one.
    return Machine(hashlib.sha256(token + _processor().encode()).digest(), kept=True)


@cache
def _of_this_process() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


@cache
def _processor() -> str:
    """The processor's name as its maker says it: two of one target may differ in speed."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line for line in lines if line.startswith("model name")), platform.machine())
