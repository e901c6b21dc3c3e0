"""Native functions as builtin functions of numpy arrays, for who has the code of ``codegen/direct.py``. No compiler is needed."""

from __future__ import annotations

import ctypes
import enum
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.codegen import direct
from ansorlite.runtime.recycled import MAPPED

#: Takes arrays. The new ones, if the arrays were as announced, and the function has run; if not, ``None``: nothing has happened.
Direct: TypeAlias = Callable[..., tuple[np.ndarray[Any, Any], ...] | None]

# numpy's flag bits.
_CONTIGUOUS: Final = 0x1
_ALIGNED: Final = 0x100
_WRITEABLE: Final = 0x400

_METH_FASTCALL: Final = 0x80


class Role(enum.Enum):
    """What becomes of an array.

    A written one must be writeable, and overlap no other.
    """

    READ = enum.auto()
    WRITTEN = enum.auto()
    MADE = enum.auto()


@dataclass(frozen=True)
class Argument:
    """An array that a native function works on.

    Attributes:
        slot: which of the function's addresses is its.
        role: whether the caller gives it, to be read or written, or gets it.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slot: int
    role: Role

    @property
    def nbytes(self) -> int:
        """Of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class DirectCalls:
    """A native function for arrays that the caller has.

    Attributes:
        given: takes all arrays, those that are written last.
        making: takes the others, and makes those; ``None`` where one is so large that its memory is to be used again.
    """

    given: Direct
    making: Direct | None


def builtins(code: int, function: int, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls:
    """Both forms of :func:`builtin`.

    Args:
        arguments: those that are written last; none that is made.
    """
    made = [replace(each, role=Role.MADE) if each.role is Role.WRITTEN else each for each in arguments]
    large = any(each.role is Role.MADE and each.nbytes >= MAPPED for each in made)
    return DirectCalls(builtin(code, function, fixed, arguments), None if large else builtin(code, function, fixed, made))


def builtin(code: int, function: int, fixed: Sequence[int], arguments: Sequence[Argument]) -> Direct:
    """A builtin function that calls the native ``void function(void **addresses)``.

    Args:
        code: where that of ``codegen/direct.py`` is in this process, until the end.
        function: where it is in this process; the caller keeps it there, and the dtypes alive.
        fixed: all addresses that it gets; those of ``arguments`` are replaced.
        arguments: what the result takes, in order, contiguous arrays of numpy's own class; and behind these what it makes.
    """
    given = sum(argument.role is not Role.MADE for argument in arguments)
    words = [function, len(fixed), given, len(arguments) - given, *map(_of_python, direct.PYTHON)]
    words += [*map(_of_numpy, direct.NUMPY.values()), id(None), id(_BYTE), *fixed]
    shapes: list[int] = []
    first_shape = len(words) + direct.RECORD * len(arguments)
    for argument in arguments:
        written = argument.role is not Role.READ
        flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if written else 0)
        words += [id(np.ndarray), id(argument.dtype), len(argument.shape), flags, argument.slot, argument.nbytes, written]
        words.append(first_shape + len(shapes))
        shapes += argument.shape
    made: Direct = _new_function(ctypes.byref(_method(code)), struct.pack(f"{len(words) + len(shapes)}q", *words, *shapes), None)
    return made


#: The dtype of memory for an array that begins at a cache line.
_BYTE: Final = np.dtype(np.uint8)


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


@cache
def _of_numpy(place: int) -> int:
    """Where a function is that numpy gives to extensions."""
    capsule = import_module("numpy._core._multiarray_umath")._ARRAY_API
    table = _pointer(capsule, None)
    address = ctypes.c_void_p.from_address(table + place * ctypes.sizeof(ctypes.c_void_p)).value
    assert address is not None
    return address


_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
