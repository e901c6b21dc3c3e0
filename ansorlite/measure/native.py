"""The backend that measures real programs: sketches, lowering, LLVM, and the runtime. Runs inside of the workers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from ansorlite import sketch
from ansorlite.measure.timing import Call
from ansorlite.runtime.build import build_candidate, pack, unpack
from ansorlite.runtime.device import Memory
from ansorlite.runtime.devices import device_of
from ansorlite.runtime.workspace import workspace
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.state import Rule
from ansorlite.task import Task


def build(task: Task, candidate: Candidate, rules: Sequence[Rule] | None = None) -> bytes:
    """Compile one candidate."""
    return pack(build_candidate(task, candidate, _sketches(task, None if rules is None else tuple(rules))))


def default(task: Task, rules: Sequence[Rule] | None = None) -> Candidate:
    """The candidate to take where none was measured."""
    return sketch.default_candidate(task, _sketches(task, None if rules is None else tuple(rules)))


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


@lru_cache(maxsize=64)
def _sketches(task: Task, rules: tuple[Rule, ...] | None) -> tuple[Sketch, ...]:
    return derive(task, rules)
