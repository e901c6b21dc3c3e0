"""One program of a task as object code, object code as bytes, and as a callable."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from ansorlite import platforms, sketch
from ansorlite.codegen.object import CompiledLaunch, Object
from ansorlite.loops.arguments import argument
from ansorlite.loops.kernel_module import When
from ansorlite.runtime.abroad import KernelAbroad
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import this_machine
from ansorlite.task import Task


def build_candidate(task: Task, candidate: Candidate) -> Object:
    """Compile one program. Its name becomes a symbol: no two programs of a model have the same.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    digest = hashlib.sha256(repr((task.key, task.target.key, candidate)).encode()).hexdigest()[:16]
    return platforms.build(replace(sketch.lower(task, candidate), name=f"kernel_{digest}"), task.target)


def compile_candidate(task: Task, candidate: Candidate) -> Kernel:
    """One program of ``task`` as a callable.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    return kernel_of(task, build_candidate(task, candidate), Origin(candidate, None))


def kernel_of(task: Task, compiled: Object, origin: Origin) -> Kernel:
    """A program that is compiled already as a callable, whose arguments have the shapes of the task's."""
    # The schedule may have merged dimensions of an argument; the caller's arrays have the task's.
    params = [argument(t) for t in (*task.dag.inputs, *task.dag.outputs)]
    return Kernel(compiled, params, task.target, origin)


def abroad(task: Task, compiled: Object, origin: Origin) -> KernelAbroad:
    """A program that is compiled already, for a machine that this one is not.

    Raises:
        TargetError: what prepares its constants cannot be compiled for this machine.
    """
    if not compiled.prepared:
        return KernelAbroad(compiled, origin, None, task.target)
    stand_in = platforms.stand_in(task.target, this_machine())
    return KernelAbroad(compiled, origin, platforms.build_preparing(sketch.lower(task, origin.candidate), stand_in), stand_in)


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
