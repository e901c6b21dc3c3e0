"""The process's one thread team: compiled and linked when the first parallel kernel is loaded, there until the end."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

import llvmlite.binding as llvm

from ansorlite.codegen import team
from ansorlite.errors import TargetError
from ansorlite.runtime.linker import linker
from ansorlite.runtime.modules import object_code
from ansorlite.target import process_target

#: Environment variable: microseconds for which an idle helper watches for work before it sleeps; read once.
SPIN_VARIABLE: Final = "ANSORLITE_SPIN_US"

#: Long enough for the gap between two kernels of a model, short enough that nobody misses the core: docs/decisions/thread-team.md
_SPIN_MICROSECONDS: Final = 50


@cache
def address() -> int:
    """Where ``ansorlite_team_run`` is in this process.

    Raises:
        TargetError: there is no team for this architecture, or ``ANSORLITE_SPIN_US`` is not a number.
    """
    target = process_target()
    code = object_code(team.text(target, spin()), target, optimised=True)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    library.export_symbol(team.RUN).export_symbol(team.FORGET)
    made = linker(target)
    tracker = library.link(made, "team")
    # Helpers run this code until the process ends, so not even the interpreter's last collection may free it.
    for owner in (made, tracker):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(tracker[team.FORGET]))
    return int(tracker[team.RUN])


def spin() -> int:
    """Nanoseconds to watch for work."""
    text = os.environ.get(SPIN_VARIABLE, str(_SPIN_MICROSECONDS))
    if not text.isdecimal() or len(text) > 9:
        raise TargetError(
            f"{SPIN_VARIABLE} is {text!r}, not a whole number of microseconds from 0 to 999999999; change or unset it"
        )
    return 1000 * int(text)
