"""From a function to the loops that run on a platform, and to code."""

from __future__ import annotations

from ansorlite.codegen.object import Compiled
from ansorlite.loops.kernel_module import KernelModule, kernel_module
from ansorlite.loops.nodes import Function
from ansorlite.loops.passes import run
from ansorlite.platforms.table import platform_of
from ansorlite.target import Target


def finished(function: Function, target: Target) -> KernelModule:
    """``function`` as it runs on ``target``: cut into what is launched once and in every call, each after all passes over loops.

    Raises:
        TargetError: there is no platform for it.
    """
    passes = platform_of(target).passes
    return kernel_module(function).map(lambda part: run(part, passes, target))


def build(function: Function, target: Target) -> Compiled:
    """Compile ``function`` for ``target``.

    Raises:
        TargetError: no code is made for it.
        ProgramSizeError: the program is beyond the limits of its platform.
    """
    platform = platform_of(target)
    return platform.emitter(finished(function, target), target, platform.limits)
