"""From a kernel module to a :class:`DeviceObject` whose code is OpenCL C. The driver compiles it where it runs."""

from __future__ import annotations

import re

from ansorlite.codegen.limits import Limits
from ansorlite.codegen.nvptx.kernel import parts
from ansorlite.codegen.object import DeviceLaunch, DeviceObject, Form
from ansorlite.codegen.opencl.kernel import emit
from ansorlite.codegen.opencl.prelude import prelude
from ansorlite.codegen.slots import Slots
from ansorlite.loops import printer
from ansorlite.loops.kernel_module import KernelModule
from ansorlite.target import Target


def compile(module: KernelModule, target: Target, limits: Limits) -> DeviceObject:
    """Print ``module`` for ``target``.

    Args:
        limits: they are of straight-line code, of which nothing is made here: loops stay loops.

    Raises:
        TargetError: it is no program for a GPU, or needs more than ``target`` has.
    """
    del limits
    slots = Slots(module, target)
    name = "ansorlite_" + re.sub(r"\W", "_", module.name, flags=re.ASCII)
    kernels, launches = [], []
    for number, launch in enumerate(module.launches):
        temporaries, statements = parts(launch.function)
        places = slots.of(launch.function, temporaries)
        for part, stmt in enumerate(statements):
            symbol = f"{name}_{number}_{part}"
            made = emit(symbol, stmt, target.gpu)
            kernels.append(made)
            arguments = tuple(places.slots[buffer] for buffer in made.buffers)
            sizes = (made.grid, made.threads, made.shared)
            launches.append(DeviceLaunch(symbol, launch.when, places.workspace, *sizes, arguments, None))
    programs = "\n\n".join(made.text for made in kernels)
    text = f"{prelude(programs, any(made.doubles for made in kernels))}\n{programs}\n"
    return DeviceObject(
        text.encode(),
        printer.module_text(module),
        "",
        module.outputs,
        tuple(launches),
        slots.prepared,
        module.unread,
        target.key,
        Form.OPENCL,
        text,
    )
