"""The backend that measures real programs: sketches, lowering, LLVM, and the runtime. Runs inside of the workers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ansorlite import search
from ansorlite.programs.build import build_candidate, pack, unpack
from ansorlite.runtime.arguments import Array, empty
from ansorlite.runtime.load import Loaded
from ansorlite.runtime.timing import Call
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.derivation import derive
from ansorlite.task import Task


def build(task: Task, candidate: Candidate) -> bytes:
    """Compile one candidate."""
    return pack(build_candidate(task, candidate))


def default(task: Task) -> Candidate:
    """The candidate to take where none was measured."""
    return search.default_candidate(task, derive(task))


def load(task: Task, artifact: bytes, arrays: Sequence[Array]) -> Call:
    """The program, bound to its arguments without checks: the arrays are this package's own. Constants are prepared here."""
    compiled = unpack(artifact)
    loaded = Loaded(compiled, task.target)
    sizes = (max(compiled.workspace, compiled.prepare_workspace), compiled.prepared)
    owners = [*arrays, *(empty((max(1, nbytes),), "uint8") for nbytes in sizes)]
    addresses = struct.pack(f"{len(owners)}P", *(array.ctypes.data for array in owners))
    loaded.prepare(addresses)

    def call(count: int, _alive: Sequence[Array] = owners) -> None:
        loaded.repeat(addresses, count)

    return call
