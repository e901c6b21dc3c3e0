"""The table of platforms. Another kind of machine is another row, and what that names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ansorlite import lazy
from ansorlite.codegen import compile as cpu
from ansorlite.codegen.limits import Limits
from ansorlite.codegen.straight_line import least_values
from ansorlite.errors import TargetError
from ansorlite.loops.passes import EMULATE, FETCH_AHEAD, PEEL, SWIZZLE, THROUGH_REGISTERS
from ansorlite.platforms.platform import Platform
from ansorlite.runtime.devices import DEVICES
from ansorlite.sketch.constraint import Constraint
from ansorlite.sketch.gpu_limits import GPU_CONSTRAINTS
from ansorlite.sketch.rules import CPU_RULES
from ansorlite.sketch.rules.gpu import GPU_RULES
from ansorlite.target import Target

if TYPE_CHECKING:
    from ansorlite.codegen.nvptx import compile as nvptx
    from ansorlite.codegen.opencl import compile as opencl
    from ansorlite.cost_model import draft, draft_gpu
else:
    # What compiles for CPUs does without the others' emitters; what compiles at all, without features and what is told of them.
    nvptx = lazy.module("ansorlite.codegen.nvptx.compile")
    opencl = lazy.module("ansorlite.codegen.opencl.compile")
    draft = lazy.module("ansorlite.cost_model.draft")
    draft_gpu = lazy.module("ansorlite.cost_model.draft_gpu")

#: Beyond that LLVM takes tens of seconds, for code that no cache of instructions holds (docs/decisions/size-of-programs.md).
_LIMITS: Final = Limits(values=30_000)
#: What is sure to go beyond these is not proposed.
_CONSTRAINTS: Final = (
    Constraint("values in straight-line code", lambda program, _: least_values(program), lambda _: _LIMITS.values),
)

_CPU: Final = Platform(
    rules=CPU_RULES,
    limits=_LIMITS,
    constraints=_CONSTRAINTS,
    prior=lambda target: draft.Draft(target),
    passes=(FETCH_AHEAD, PEEL),
    emitter=cpu.compile,
    device=DEVICES["llvm", "x86_64"],
)
_GPU: Final = Platform(
    rules=GPU_RULES,
    limits=_LIMITS,
    constraints=(*_CONSTRAINTS, *GPU_CONSTRAINTS),
    prior=lambda target: draft_gpu.GpuDraft(target),
    passes=(THROUGH_REGISTERS, SWIZZLE),
    emitter=lambda module, target, limits: nvptx.compile(module, target, limits),
    device=DEVICES["cuda", "nvptx64"],
)
#: Programs with blocks and threads, on a CPU.
_EMULATED: Final = replace(_GPU, passes=(EMULATE, *_CPU.passes), emitter=cpu.compile)

#: By kind and architecture of the target.
PLATFORMS: Final[Mapping[tuple[str, str], Platform]] = {
    ("llvm", "x86_64"): _CPU,
    ("llvm", "aarch64"): replace(_CPU, device=DEVICES["llvm", "aarch64"]),
    ("emulated", "x86_64"): replace(_EMULATED, device=DEVICES["emulated", "x86_64"]),
    ("emulated", "aarch64"): replace(_EMULATED, device=DEVICES["emulated", "aarch64"]),
    ("cuda", "nvptx64"): _GPU,
    ("opencl", "spir64"): replace(
        _GPU,
        passes=(THROUGH_REGISTERS,),
        emitter=lambda module, target, limits: opencl.compile(module, target, limits),
        device=DEVICES["opencl", "spir64"],
    ),
}


def platform_of(target: Target) -> Platform:
    """Raises:
    TargetError: there is no such platform.
    """
    if target.platform not in PLATFORMS:
        known = ", ".join(" ".join(each) for each in PLATFORMS)
        raise TargetError(f"no programs are made for the platform {' '.join(target.platform)}; the platforms are: {known}")
    return PLATFORMS[target.platform]
