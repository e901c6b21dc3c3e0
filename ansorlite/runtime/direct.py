"""Native functions as builtin functions of numpy arrays: what a call costs beside the work is two microseconds, not twenty."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm

from ansorlite.codegen import direct
from ansorlite.runtime.builtin import Argument, DirectCalls, builtins
from ansorlite.runtime.linker import linker
from ansorlite.runtime.modules import object_code
from ansorlite.target import process_target


def direct_calls(function: int, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls:
    """Builtin functions that call a native one: see :func:`ansorlite.runtime.builtin.builtins`."""
    return builtins(_code(), function, fixed, arguments)


@cache
def _code() -> int:
    """The code of all functions that are made here; there until the end."""
    target = process_target()
    code = object_code(direct.text(target, object.__basicsize__), target)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    library.export_symbol(direct.DIRECT)
    made = linker(target)
    tracker = library.link(made, "direct")
    # Functions may outlive this module in the interpreter's last collection.
    for owner in (made, tracker):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    address: int = tracker[direct.DIRECT]
    return address
