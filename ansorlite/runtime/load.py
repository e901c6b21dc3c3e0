"""Object code into this process, by LLVM's in-memory linker."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

import llvmlite.binding as llvm

from ansorlite.codegen import entry, team
from ansorlite.codegen.object import Object
from ansorlite.errors import TargetError
from ansorlite.runtime.builtin import Argument, DirectCalls
from ansorlite.runtime.direct import direct_calls
from ansorlite.runtime.linker import Linked
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
        call: takes the bytes of an array of addresses: the parameters', then the workspace's and that of what is prepared.
        repeat: takes the same, and how many times to call it in a row.
        prepare: takes the same, and does what must be done before the first of the calls with these constants.
        address: where the entry is.
    """

    call: Callable[[bytes], None]
    repeat: Callable[[bytes, int], None]
    prepare: Callable[[bytes], None]
    address: int

    def __init__(self, compiled: Object, target: Target) -> None:
        """Link ``compiled`` into this process.

        Raises:
            TargetError: it was compiled for another target, cannot run here, or needs a library that is not there.
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
        self._linked = linked = Linked(library, target)
        self.address = linked[compiled.entry]
        self.call = _Entry(self.address)
        self.repeat = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64)(linked[compiled.repeat])
        self.prepare = _Entry(linked[compiled.prepare]) if compiled.prepared else _nothing

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls:
        """The entry as builtin functions of arrays."""
        return direct_calls(self.address, fixed, arguments)


class LoadedEntry:
    """The one function of many kernels (``codegen/entry.py``), callable for as long as this and they exist.

    Attributes:
        run: takes the bytes of an array of the blocks' addresses.
        address: where it is.
    """

    run: Callable[[bytes], None]
    address: int

    def __init__(self, steps: Sequence[entry.EntryStep], kernels: Mapping[str, int], target: Target) -> None:
        """Compile and link ``steps``.

        Args:
            kernels: symbol of each kernel → where it is in this process.
        """
        code = object_code(entry.text(_ENTRY, steps, target), target)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address_ in kernels.items():
            library.import_symbol(name, address_)
        library.export_symbol(_ENTRY).export_symbol(entry.profiled(_ENTRY))
        self._linked = linked = Linked(library, target)
        self.address = linked[_ENTRY]
        self.run = _Entry(self.address)
        self._count = len(steps)
        self._profile = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(linked[entry.profiled(_ENTRY)])

    def profile(self, bases: bytes) -> list[int]:
        """Run them; each step's nanoseconds."""
        nanoseconds = (ctypes.c_int64 * self._count)()
        self._profile(bases, nanoseconds)
        return list(nanoseconds)

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls:
        """``run`` as builtin functions of arrays."""
        return direct_calls(self.address, fixed, arguments)


def _nothing(_: bytes) -> None:
    """What there is to prepare where nothing is constant."""


@cache
def _library(name: str) -> None:
    try:
        llvm.load_library_permanently(name)
    except RuntimeError as error:
        raise TargetError(f"kernels need {name}, which cannot be loaded ({error}); install it") from error
