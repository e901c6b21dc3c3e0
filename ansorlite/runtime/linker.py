"""LLVM's in-memory linker: the one way in which machine code comes into this process to be run."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from ansorlite.codegen.machine import machine
from ansorlite.target import Target, check_runs


@cache
def linker(target: Target) -> Any:
    """llvmlite's linker of code for ``target``; there until the end.

    Raises:
        TargetError: this processor cannot run such code.
    """
    check_runs(target)
    return llvm.create_lljit_compiler(machine(target), use_jit_link=True)
