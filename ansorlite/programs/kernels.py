"""A compiled program as a callable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ansorlite import lazy, platforms, sketch
from ansorlite.codegen.object import Compiled, DeviceObject, Form, Object
from ansorlite.loops.arguments import argument
from ansorlite.loops.nodes import Buffer
from ansorlite.runtime.abroad import KernelAbroad, check_exported
from ansorlite.runtime.device_kernel import DeviceKernel
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.sketch.candidate import Candidate
from ansorlite.target import Target, this_machine
from ansorlite.task import Task

if TYPE_CHECKING:
    from ansorlite.programs import build
else:
    build = lazy.module("ansorlite.programs.build")


def compile_candidate(task: Task, candidate: Candidate) -> Kernel:
    """One program of ``task`` as a callable.

    Raises:
        ScheduleError: its trace makes no program of the task.
    """
    return kernel_of(task, build.build_candidate(task, candidate), Origin(candidate, None))


def kernel_of(task: Task, compiled: Compiled, origin: Origin) -> Kernel:
    """A program that is compiled already as a callable, whose arguments have the shapes of the task's."""
    # The schedule may have merged dimensions of an argument; the caller's arrays have the task's.
    params = [argument(t) for t in (*task.dag.inputs, *task.dag.outputs)]
    return kernel_on(compiled, params, task.target, origin)


def kernel_on(compiled: Compiled, params: Sequence[Buffer], target: Target, origin: Origin | None) -> Kernel:
    """A compiled program as what its device's callers expect of a kernel.

    Args:
        params: inputs, then outputs, as callers see them.
    """
    on_gpu = isinstance(compiled, DeviceObject) and compiled.form is not Form.OPENCL
    return (DeviceKernel if on_gpu else Kernel)(compiled, params, target, origin)


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
