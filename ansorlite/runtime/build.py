"""One program of a task as object code, and object code as bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ansorlite import platforms, sketch
from ansorlite.codegen.object import CompiledLaunch, Object
from ansorlite.loops.kernel_module import When
from ansorlite.sketch.candidate import Candidate
from ansorlite.task import Task

if TYPE_CHECKING:
    from ansorlite.sketch.sketch import Sketch


def build_candidate(task: Task, candidate: Candidate, sketches: Sequence[Sketch]) -> Object:
    """Compile one program. Its name becomes a symbol: no two programs of a model have the same.

    Raises:
        TuningError: the task has no such program.
    """
    digest = hashlib.sha256(repr((task.key, task.target.key, candidate)).encode()).hexdigest()[:16]
    return platforms.build(replace(sketch.lower(task, candidate, sketches), name=f"kernel_{digest}"), task.target)


def pack(compiled: Object) -> bytes:
    """The fields as one line of JSON, then the machine code."""
    fields = {name: value for name, value in vars(compiled).items() if name != "code"}
    fields["launches"] = [(launch.symbol, launch.when.name, launch.workspace) for launch in compiled.launches]
    return json.dumps(fields).encode() + b"\n" + compiled.code


def unpack(data: bytes) -> Object:
    """The inverse of :func:`pack`.

    Raises:
        ValueError, TypeError, KeyError: ``data`` is something else.
    """
    line, _, code = data.partition(b"\n")
    fields = json.loads(line)
    launches = tuple(CompiledLaunch(symbol, When[when], nbytes) for symbol, when, nbytes in fields["launches"])
    return Object(**{**fields, "launches": launches, "unread": tuple(fields["unread"])}, code=code)
