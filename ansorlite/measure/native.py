"""The backend that measures real programs: sketches, lowering, LLVM, and the runtime. Runs inside of the workers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ansorlite import search
from ansorlite.codegen.object import DeviceObject
from ansorlite.measure.backend import BuiltProgram
from ansorlite.programs.build import build_candidate, loops_key, pack, unpack
from ansorlite.runtime.device import Memory
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.timing import Call
from ansorlite.runtime.workspace import workspace
from ansorlite.sketch.candidate import Candidate
from ansorlite.spaces.derivation import derive
from ansorlite.task import Task


def build(task: Task, candidate: Candidate) -> BuiltProgram:
    """Compile one candidate."""
    compiled = build_candidate(task, candidate)
    reports = compiled.reports if isinstance(compiled, DeviceObject) else ()
    return BuiltProgram(pack(compiled), loops_key(task, candidate, compiled), reports)


def default(task: Task) -> Candidate:
    """The candidate to take where none was measured."""
    return search.default_candidate(task, derive(task))


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
