"""From the bytes of a program to what calls it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ansorlite.programs.packing import unpack
from ansorlite.runtime.device import Memory
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.timing import Call
from ansorlite.runtime.workspace import workspace
from ansorlite.task import Task


def load(task: Task, artifact: bytes, arguments: Sequence[Memory]) -> Call:
    """The program, bound to its arguments without checks: they are this package's own. Constants are prepared here."""
    compiled, device = unpack(artifact), device_of(task.target)
    loaded = device.load(compiled)
    sizes = (max(compiled.workspace, compiled.prepare_workspace), compiled.prepared)
    owners = [*arguments, *(workspace(device, nbytes) for nbytes in sizes)]
    addresses = struct.pack(f"{len(owners)}P", *(memory.address for memory in owners))
    loaded.prepare(addresses)

    def call(count: int, _alive: Sequence[Memory] = owners) -> None:
        loaded.repeat(addresses, count)

    return call
