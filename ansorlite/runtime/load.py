"""Object code into this process, by LLVM's in-memory linker."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from ansorlite.codegen import entry, team
from ansorlite.codegen.machine import machine
from ansorlite.codegen.object import Object
from ansorlite.errors import TargetError
from ansorlite.runtime.modules import object_code
from ansorlite.runtime.team import address
from ansorlite.target import Target

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_ENTRY: Final = "ansorlite_entry"

#: The C library's mathematics, which kernels call.
_MATH = "libm.so.6"


class Loaded:
    """A kernel's functions, callable for as long as this exists.

    Attributes:
        entry: takes the bytes of an array of addresses: the parameters', then the workspace's and that of what is prepared.
        repeat: takes the same, and how many times to call it in a row.
        prepare: takes the same, and does what must be done before the first of the calls with these constants.
        address: where the entry is.
    """

    entry: Callable[[bytes], None]
    repeat: Callable[[bytes, int], None]
    prepare: Callable[[bytes], None]
    address: int

    def __init__(self, compiled: Object, target: Target) -> None:
        """Link ``compiled`` into this process.

        Raises:
            TargetError: it was compiled for another target, or needs a library that is not there.
        """
        if compiled.target != target.key:
            raise TargetError(f"this kernel was compiled for {compiled.target}, not for {target.key}; compile it again")
        _library(_MATH)
        library = llvm.JITLibraryBuilder().add_object_img(compiled.code).add_current_process()
        library.export_symbol(compiled.entry).export_symbol(compiled.repeat)
        if f"@{team.RUN}(" in compiled.llvm:
            library.import_symbol(team.RUN, address())
        if compiled.prepared:
            library.export_symbol(compiled.prepare)
        self._linked = linked = _Linked(library, target)
        self.address = linked[compiled.entry]
        self.entry = _Entry(self.address)
        self.repeat = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64)(linked[compiled.repeat])
        self.prepare = _Entry(linked[compiled.prepare]) if compiled.prepared else _nothing


class LoadedEntry:
    """The one function of many kernels (``codegen/entry.py``), callable for as long as this and they exist.

    Attributes:
        run: takes the bytes of an array of the blocks' addresses.
        profile: takes the same, and an array of int64 to which each step's nanoseconds are added.
        address: where ``run`` is.
    """

    run: Callable[[bytes], None]
    profile: Callable[[bytes, Any], None]
    address: int

    def __init__(self, steps: Sequence[entry.Step], kernels: Mapping[str, int], target: Target) -> None:
        """Compile and link ``steps``.

        Args:
            kernels: symbol of each kernel → where it is in this process.
        """
        code = object_code(entry.text(_ENTRY, steps, target), target)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address_ in kernels.items():
            library.import_symbol(name, address_)
        library.export_symbol(_ENTRY).export_symbol(entry.profiled(_ENTRY))
        self._linked = linked = _Linked(library, target)
        self.address = linked[_ENTRY]
        self.run = _Entry(self.address)
        self.profile = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(linked[entry.profiled(_ENTRY)])


def _nothing(_: bytes) -> None:
    """What there is to prepare where nothing is constant."""


@cache
def _library(name: str) -> None:
    try:
        llvm.load_library_permanently(name)
    except RuntimeError as error:
        raise TargetError(f"kernels need {name}, which cannot be loaded ({error}); install it") from error


class _Linker:
    """One of LLVM's in-memory linkers.

    Of whatever it links it keeps 9 KiB after that is unloaded, until it goes itself. So it goes with the last of a few.

    Attributes:
        links: how many libraries it was asked to link.
    """

    def __init__(self, target: Target) -> None:
        self.jit: Any = llvm.create_lljit_compiler(machine(target), use_jit_link=True)
        self.links = 0


#: To make a linker takes as long as to link a kernel, so the kernels of a model share some.
_LINKS_OF_ONE: Final = 32

#: Target → the linker for what is linked next, for as long as something that it linked is in use.
_linkers: Final[WeakValueDictionary[Target, _Linker]] = WeakValueDictionary()
_linkers_lock: Final = Lock()


class _Linked:
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
