"""From a kernel module to a :class:`DeviceObject` for an NVIDIA GPU: LLVM IR, PTX, and machine code where something makes it."""

from __future__ import annotations

import re

from ansorlite.codegen.builder import Module
from ansorlite.codegen.limits import Limits
from ansorlite.codegen.nvptx import kernel
from ansorlite.codegen.nvptx.assemble import Assembled, assemble, assembler, link, to_ptx
from ansorlite.codegen.object import DeviceLaunch, DeviceObject, Form
from ansorlite.codegen.slots import Slots
from ansorlite.loops import printer
from ansorlite.loops.kernel_module import KernelModule
from ansorlite.target import Target


def compile(module: KernelModule, target: Target, limits: Limits) -> DeviceObject:
    """Compile ``module`` for ``target``, an NVIDIA GPU. No driver is needed, and none is asked.

    Raises:
        TargetError: it is no program for a GPU, needs more than ``target`` has, or is refused by the assembler.
        ProgramSizeError: a function is beyond ``limits``.
    """
    text = Module(target, limits.values)
    slots = Slots(module, target)
    name = "ansorlite_" + re.sub(r"\W", "_", module.name, flags=re.ASCII)
    launches: list[DeviceLaunch] = []
    for number, launch in enumerate(module.launches):
        temporaries, parts = kernel.parts(launch.function)
        kernels = [kernel.emit(text, f"{name}_{number}_{part}", stmt) for part, stmt in enumerate(parts)]
        places = slots.of(launch.function, (*temporaries, *(buffer for made in kernels for buffer in made.scratch)))
        for made in kernels:
            arguments = tuple(places.slots[buffer] for buffer in (*made.buffers, *made.scratch))
            sizes = (made.grid, made.threads, made.shared)
            launches.append(DeviceLaunch(made.symbol, launch.when, places.workspace, *sizes, arguments, None))
    llvm = text.text()
    ptx = to_ptx(llvm, text.target)
    form, code, reports = Form.PTX, ptx.encode(), None
    if (found := _assembled(ptx, target)) is not None:
        form, code, reports = Form.CUBIN, found.cubin, found.reports
    return DeviceObject(
        code,
        printer.module_text(module),
        llvm,
        module.outputs,
        tuple(launch if reports is None else launch.reported(reports.get(launch.symbol)) for launch in launches),
        slots.prepared,
        module.unread,
        target.key,
        form,
        ptx,
    )


def _assembled(ptx: str, target: Target) -> Assembled | None:
    """``None``: that is left to the driver."""
    match assembler():
        case "ptxas":
            return assemble(ptx, target.cpu)
        case "nvjitlink":
            return link(ptx, target.cpu)
        case _:
            return None
