"""From a function to the loops that run on a platform, and to code."""

from __future__ import annotations

from dataclasses import replace

from ansorlite.codegen.object import Compiled
from ansorlite.loops.kernel_module import KernelModule, When, kernel_module
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


def stand_in(target: Target, here: Target) -> Target:
    """A target whose code runs on ``here`` and keeps what is prepared where ``target``'s does: that depends on the length of
    vectors, and what temporaries it takes on the threads. In the place of a GPU a processor runs its blocks and threads."""
    if target.gpu is not None:
        here = replace(here, kind="emulated", gpu=target.gpu)
    return replace(here, vector_bytes=target.vector_bytes, vector_registers=target.vector_registers, threads=target.threads)


def build_preparing(function: Function, target: Target) -> Compiled:
    """Compile of ``function`` what is launched once, and nothing else.

    Raises:
        TargetError, ProgramSizeError: as :func:`build`.
    """
    module, platform = kernel_module(function), platform_of(target)
    once = replace(module, launches=tuple(launch for launch in module.launches if launch.when is When.ONCE))
    return platform.emitter(once.map(lambda part: run(part, platform.passes, target)), target, platform.limits)


def build(function: Function, target: Target) -> Compiled:
    """Compile ``function`` for ``target``.

    Raises:
        TargetError: no code is made for it.
        ProgramSizeError: the program is beyond the limits of its platform.
    """
    platform = platform_of(target)
    return platform.emitter(finished(function, target), target, platform.limits)
