"""How what tests compile is run: here where the processor can, 64-bit Arm under qemu, other x86 with stand-ins.

``ANSORLITE_TARGET`` names the target of what is compiled; tests ask :func:`ansorlite.target.host` for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import pytest

from ansorlite.codegen.object import Object
from ansorlite.errors import TargetError
from ansorlite.loops.nodes import Buffer, Function
from ansorlite.platforms import build
from ansorlite.runtime.kernel import Kernel
from ansorlite.target import Target, host, obstacle, this_machine
from ansorlite.te import dtypes
from tests import emulated, stand_ins


class How(Enum):
    NATIVE = "run by this processor"
    EMULATED = "run by qemu"
    STAND_IN = "run by this processor, with stand-ins for instructions that it lacks"
    COMPILED = "compiled, not run"


def how(target: Target) -> How:
    """How kernels for ``target`` run here."""
    if obstacle(target) is None:
        return How.NATIVE
    if target.architecture == "aarch64" and emulated.obstacle() is None:
        return How.EMULATED
    return How.COMPILED if stand_ins.obstacle(target, this_machine()) else How.STAND_IN


def reason(target: Target) -> str:
    """Why kernels for ``target`` do not run here."""
    why = obstacle(target)
    other = emulated.obstacle() if target.architecture == "aarch64" else stand_ins.obstacle(target, this_machine())
    return f"{why}, and {other}"


def summary() -> str:
    """One line for a test run: which target it was, and how it was run."""
    target = host()
    chosen = how(target)
    why = f": {reason(target)}" if chosen is How.COMPILED else ""
    return f"target: {target.key}: {chosen.value}{why}"


def check_target() -> None:
    """Raises:
    pytest.UsageError: there is no such target; or in CI, what emulates it is not installed.
    """
    try:
        target = host()
    except TargetError as error:
        raise pytest.UsageError(str(error)) from None
    if os.environ.get("CI") and target.architecture == "aarch64" and how(target) is How.COMPILED:
        raise pytest.UsageError(f"CI runs every target that it can: {reason(target)}")


def kernel(compiled: Object, params: Sequence[Buffer], target: Target) -> Kernel | emulated.EmulatedKernel | None:
    """What was compiled, ready to run; ``None`` where it cannot run here."""
    chosen = how(target)
    if chosen is How.NATIVE:
        return Kernel(compiled, params, target)
    if chosen is How.STAND_IN:
        here = this_machine(target.threads)
        return Kernel(stand_ins.compiled_here(compiled, here), params, here)
    return emulated.EmulatedKernel(compiled, params, target) if chosen is How.EMULATED else None


def run(function: Function, target: Target, *arrays: np.ndarray) -> None:
    """Compile ``function`` and run it on these arrays in place; skip the test if what was compiled cannot run here."""
    run_compiled(build(function, target), function, target, *arrays)


def called(function: Function, target: Target, *inputs: np.ndarray) -> Any:
    """The output of ``function``, or a tuple of them: see :func:`run`."""
    outputs = tuple(np.empty(p.shape, dtypes.NUMPY[p.dtype]) for p in function.params[len(inputs) :])
    run(function, target, *inputs, *outputs)
    return outputs[0] if len(outputs) == 1 else outputs


def run_compiled(compiled: Object, function: Function, target: Target, *arrays: np.ndarray) -> None:
    """Run what ``function`` was compiled to: see :func:`run`."""
    loaded = kernel(compiled, function.params, target)
    if loaded is None:
        pytest.skip(f"{target.key}: {How.COMPILED.value}: {reason(target)}")
    loaded.bind(*arrays)()
