"""Native functions as builtin functions of numpy arrays, for who has the code of ``codegen/direct.py``. No compiler is needed."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.codegen import direct

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


def builtin(code: int, function: int, fixed: Sequence[int], arguments: Sequence[Argument]) -> Direct:
    """A builtin function that calls the native ``void function(void **addresses)``.

    Args:
        code: where that of ``codegen/direct.py`` is in this process, until the end.
        function: where it is in this process; the caller keeps it there, and the dtypes alive.
        fixed: all addresses that it gets; those of ``arguments`` are replaced.
        arguments: what the result takes, in order: contiguous arrays of numpy's own class.
    """
    words = [function, len(fixed), len(arguments), *map(_of_python, direct.PYTHON), *fixed]
    shapes: list[int] = []
    first_shape = len(words) + direct.RECORD * len(arguments)
    for argument in arguments:
        flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if argument.written else 0)
        nbytes = math.prod(argument.shape) * argument.dtype.itemsize
        words += [id(np.ndarray), id(argument.dtype), len(argument.shape), flags, argument.slot, nbytes, argument.written]
        words.append(first_shape + len(shapes))
        shapes += argument.shape
    made: Direct = _new_function(ctypes.byref(_method(code)), struct.pack(f"{len(words) + len(shapes)}q", *words, *shapes), None)
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
def _method(code: int) -> _MethodDef:
    """Of all functions with this code; there until the end."""
    definition = _MethodDef(b"direct_call", code, _METH_FASTCALL, None)
    # Functions may outlive this module in the interpreter's last collection.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return definition


@cache
def _of_python(name: str) -> int:
    """Where a function of Python's is."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address
