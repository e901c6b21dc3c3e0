"""Native functions as builtin functions of numpy arrays: what a call costs beside the work is two microseconds, not twenty."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from ansorlite.codegen import direct
from ansorlite.codegen.machine import machine
from ansorlite.runtime.modules import object_code
from ansorlite.target import host

#: Takes arrays. Whether they were as announced, and the function has run; if not, nothing has happened.
Direct: TypeAlias = Callable[..., bool]

# numpy's flag bits.
_CONTIGUOUS: Final = 0x1
_ALIGNED: Final = 0x100
_WRITEABLE: Final = 0x400

_METH_FASTCALL: Final = 0x80


@dataclass(frozen=True)
class Argument:
    """An array that a native function is called with.

    Attributes:
        slot: which of the function's addresses is its.
        written: it must be writeable, and overlap no other argument.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slot: int
    written: bool


def direct_call(function: int, fixed: Sequence[int], arguments: Sequence[Argument]) -> Direct:
    """A builtin function that calls the native ``void function(void **addresses)``.

    Args:
        function: where it is in this process; the caller keeps it there, and the dtypes alive.
        fixed: all addresses that it gets; those of ``arguments`` are replaced.
        arguments: what the result takes, in order: contiguous arrays of numpy's own class.
    """
    words = [function, len(fixed), len(arguments), *fixed]
    shapes: list[int] = []
    first_shape = len(words) + direct.RECORD * len(arguments)
    for argument in arguments:
        flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if argument.written else 0)
        nbytes = math.prod(argument.shape) * argument.dtype.itemsize
        words += [id(np.ndarray), id(argument.dtype), len(argument.shape), flags, argument.slot, nbytes, argument.written]
        words.append(first_shape + len(shapes))
        shapes += argument.shape
    made: Direct = _new_function(ctypes.byref(_method()), struct.pack(f"{len(words) + len(shapes)}q", *words, *shapes), None)
    return made


class _MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


@cache
def _method() -> _MethodDef:
    """Of all functions that are made here; there until the end, as is its code."""
    target = host()
    code = object_code(direct.text(target, object.__basicsize__), target)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in direct.PYTHON:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        assert address is not None
        library.import_symbol(name, address)
    library.export_symbol(direct.DIRECT)
    linker = llvm.create_lljit_compiler(machine(target), use_jit_link=True)
    tracker = library.link(linker, "direct")
    definition = _MethodDef(b"direct_call", tracker[direct.DIRECT], _METH_FASTCALL, None)
    # Functions may outlive this module in the interpreter's last collection.
    for owner in (linker, tracker, definition):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return definition
