"""One program of a task as object code, object code as bytes, and as a callable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, replace

from ansorlite import platforms, sketch
from ansorlite.codegen.object import (
    Compiled,
    CompiledLaunch,
    DeviceLaunch,
    DeviceObject,
    Form,
    Object,
    Report,
    Slot,
)
from ansorlite.loops import printer
from ansorlite.loops.arguments import argument
from ansorlite.loops.kernel_module import When
from ansorlite.loops.nodes import Buffer, Function
from ansorlite.runtime.abroad import KernelAbroad, check_exported
from ansorlite.runtime.device_kernel import DeviceKernel
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, this_machine
from ansorlite.task import Task


def build_candidate(task: Task, candidate: Candidate) -> Compiled:
    """Compile one program.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    return platforms.build(named(task, candidate, sketch.lower(task, candidate)), task.target)


def named(task: Task, candidate: Candidate, function: Function) -> Function:
    """The loop IR of one program, by the name that becomes its symbol."""
    return replace(function, name=_symbol(task, candidate))


def loops_key(task: Task, candidate: Candidate, compiled: Compiled) -> str:
    """By which records know a program that was built: the digest of the loops that run, whatever its symbol."""
    return printer.digest(compiled.loops.replace(_symbol(task, candidate), "kernel"))


def _symbol(task: Task, candidate: Candidate) -> str:
    """The name of its function: no two programs of a model have the same."""
    digest = hashlib.sha256(repr((task.key, task.target.key, candidate)).encode()).hexdigest()[:16]
    return f"kernel_{digest}"


def compile_candidate(task: Task, candidate: Candidate) -> Kernel:
    """One program of ``task`` as a callable.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    return kernel_of(task, build_candidate(task, candidate), Origin(candidate, None))


def kernel_of(task: Task, compiled: Compiled, origin: Origin) -> Kernel:
    """A program that is compiled already as a callable, whose arguments have the shapes of the task's."""
    # The schedule may have merged dimensions of an argument; the caller's arrays have the task's.
    params = [argument(t) for t in (*task.dag.inputs, *task.dag.outputs)]
    return kernel_on(compiled, params, task.target, origin)


def abroad(task: Task, compiled: Compiled, origin: Origin) -> KernelAbroad:
    """A program that is compiled already, for a machine that this one is not.

    Raises:
        ArgumentError: it is for an OpenCL driver.
        TargetError: what prepares its constants cannot be compiled for this machine.
    """
    check_exported(compiled, task.target)
    if not compiled.prepared:
        return KernelAbroad(compiled, origin, None, task.target)
    stand_in = platforms.stand_in(task.target, this_machine())
    preparing = platforms.build_preparing(sketch.lower(task, origin.candidate), stand_in)
    assert isinstance(preparing, Object), "this machine's processor is a CPU"
    return KernelAbroad(compiled, origin, preparing, stand_in)


def kernel_on(compiled: Compiled, params: Sequence[Buffer], target: Target, origin: Origin | None) -> Kernel:
    """A compiled program as what its device's callers expect of a kernel.

    Args:
        params: inputs, then outputs, as callers see them.
    """
    on_gpu = isinstance(compiled, DeviceObject) and compiled.form is not Form.OPENCL
    return (DeviceKernel if on_gpu else Kernel)(compiled, params, target, origin)


def pack(compiled: Compiled) -> bytes:
    """The fields as one line of JSON, then the machine code."""
    fields = {name: value for name, value in vars(compiled).items() if name != "code"}
    fields["launches"] = [_packed(launch) for launch in compiled.launches]
    if isinstance(compiled, DeviceObject):
        fields["form"] = compiled.form.name
    return json.dumps(fields).encode() + b"\n" + compiled.code


def unpack(data: bytes) -> Compiled:
    """The inverse of :func:`pack`.

    Raises:
        ValueError, TypeError, KeyError: ``data`` is something else.
    """
    line, _, code = data.partition(b"\n")
    fields = json.loads(line)
    fields["unread"] = tuple(fields["unread"])
    if "form" not in fields:
        launches = tuple(CompiledLaunch(symbol, When[when], nbytes) for symbol, when, nbytes in fields["launches"])
        return Object(**{**fields, "launches": launches}, code=code)
    launches = tuple(_device_launch(*launch) for launch in fields["launches"])
    return DeviceObject(**{**fields, "launches": launches, "form": Form[fields["form"]]}, code=code)


def _packed(launch: CompiledLaunch) -> tuple[object, ...]:
    common = (launch.symbol, launch.when.name, launch.workspace)
    if not isinstance(launch, DeviceLaunch):
        return common
    arguments = [(slot.base, slot.offset) for slot in launch.arguments]
    report = None if launch.report is None else astuple(launch.report)
    return (*common, launch.grid, launch.threads, launch.shared, arguments, report)


def _device_launch(
    symbol: str,
    when: str,
    workspace: int,
    grid: int,
    threads: int,
    shared: int,
    arguments: list[tuple[int, int]],
    report: tuple[int, int, int] | None,
) -> DeviceLaunch:
    slots = tuple(Slot(*slot) for slot in arguments)
    told = None if report is None else Report(*report)
    return DeviceLaunch(symbol, When[when], workspace, grid, threads, shared, slots, told)
