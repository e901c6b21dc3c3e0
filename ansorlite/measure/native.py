"""The backend that measures real programs: sketches, lowering, LLVM, and the runtime. Runs inside of the workers."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache

from ansorlite.codegen import Object
from ansorlite.codegen import build as compile_function
from ansorlite.measure.inputs import Array, empty
from ansorlite.measure.timing import Call
from ansorlite.runtime.load import Loaded
from ansorlite.sketch.candidate import Candidate
from ansorlite.sketch.derivation import derive
from ansorlite.sketch.program import lower
from ansorlite.sketch.sketch import Sketch
from ansorlite.sketch.state import Rule
from ansorlite.task import Task


def build(task: Task, candidate: Candidate, rules: Sequence[Rule] | None = None) -> bytes:
    """Compile one candidate: the object's fields as one line of JSON, then its machine code."""
    compiled = compile_function(lower(task, candidate, _sketches(task, None if rules is None else tuple(rules))), task.target)
    fields = {name: value for name, value in vars(compiled).items() if name != "code"}
    return json.dumps(fields).encode() + b"\n" + compiled.code


def load(task: Task, artifact: bytes, arrays: Sequence[Array]) -> Call:
    """The program, bound to its arguments without checks: the arrays are this package's own."""
    fields, _, code = artifact.partition(b"\n")
    compiled = Object(code=code, **json.loads(fields))
    loaded = Loaded(compiled, task.target)
    workspace = empty((max(1, compiled.workspace),), "uint8")
    owners = [*arrays, workspace]
    addresses = struct.pack(f"{len(owners)}P", *(array.ctypes.data for array in owners))

    def call(count: int, _alive: Sequence[Array] = owners) -> None:
        loaded.repeat(addresses, count)

    return call


@lru_cache(maxsize=64)
def _sketches(task: Task, rules: tuple[Rule, ...] | None) -> tuple[Sketch, ...]:
    return derive(task, rules)
