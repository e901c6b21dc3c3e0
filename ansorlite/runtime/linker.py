"""LLVM's in-memory linker: the one way in which machine code comes into this process to be run."""

from __future__ import annotations

from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from ansorlite.codegen.machine import machine
from ansorlite.target import Target, check_runs


def linker(target: Target) -> Any:
    """A linker of llvmlite's, of code for ``target``.

    Raises:
        TargetError: this processor cannot run such code.
    """
    check_runs(target)
    return llvm.create_lljit_compiler(machine(target), use_jit_link=True)


class _Linker:
    """One of LLVM's in-memory linkers.

    Of whatever it links it keeps 9 KiB after that is unloaded, until it goes itself. So it goes with the last of a few.

    Attributes:
        links: how many libraries it was asked to link.
    """

    def __init__(self, target: Target) -> None:
        self.jit = linker(target)
        self.links = 0


#: To make a linker takes as long as to link a kernel, so the kernels of a model share some.
_LINKS_OF_ONE: Final = 32

#: Target → the linker for what is linked next, for as long as something that it linked is in use.
_linkers: Final[WeakValueDictionary[Target, _Linker]] = WeakValueDictionary()
_linkers_lock: Final = Lock()


class Linked:
    """Functions in this process by their symbols, for as long as this exists."""

    def __init__(self, library: llvm.JITLibraryBuilder, target: Target) -> None:
        with _linkers_lock:
            linker = _linkers.get(target)
            if linker is None or linker.links == _LINKS_OF_ONE:
                linker = _linkers[target] = _Linker(target)
            linker.links += 1
            name = f"library{linker.links}"
        self._tracker: Any = library.link(linker.jit, name)
        self._linker = linker

    def __getitem__(self, symbol: str) -> int:
        address: int = self._tracker[symbol]
        return address
