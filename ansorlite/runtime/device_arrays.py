"""Arrays of any library on one NVIDIA GPU, as CuPy's: the same memory where they are there, a copy where they are on the host."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

import numpy as np

from ansorlite.alignment import DEVICE_ALIGNMENT
from ansorlite.errors import ArgumentError
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.cuda import Cuda, device_type
from ansorlite.runtime.device import Device

#: One on a GPU: CuPy's, or another library's.
DeviceArray: TypeAlias = Any

#: Kinds of devices in DLPack: CUDA's memory, and that which it shares with the host.
_CUDA: Final = (2, 13)
_ON_HOST: Final = (1, 3)


def on_gpu(array: Any) -> bool:
    """Whether ``array`` is one of a GPU's memory, or of another device's that is not the host."""
    if isinstance(array, np.ndarray | np.generic):
        return False
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) not in _ON_HOST
    return hasattr(array, "__cuda_array_interface__")


def in_place(view: DeviceArray) -> bool:
    """Whether programs can use it where it is: they load several elements at once."""
    return bool(view.flags.c_contiguous) and view.data.ptr % DEVICE_ALIGNMENT == 0


def contiguous(view: DeviceArray) -> DeviceArray:
    """The same where programs can use it, else a copy."""
    return view if in_place(view) else view.copy()


def overlap(a: DeviceArray, b: DeviceArray) -> bool:
    """Of two contiguous arrays."""
    return bool(a.data.ptr < b.data.ptr + b.nbytes and b.data.ptr < a.data.ptr + a.nbytes)


def apart(inputs: Iterable[DeviceArray], written: list[DeviceArray]) -> list[DeviceArray]:
    """``inputs``, with a copy of each that one of ``written`` overlaps: it may be written before it is read for the last time."""
    return [array.copy() if any(overlap(array, other) for other in written) else array for array in inputs]


def arrays_of(device: Device) -> DeviceArrays | None:
    """Of a device whose arrays callers may have; ``None`` of the others."""
    return DeviceArrays(device) if isinstance(device, Cuda) else None


class DeviceArrays:
    """Those of one GPU. All of it is to be done while that is CuPy's current device (:meth:`Cuda.current`)."""

    def __init__(self, device: Cuda) -> None:
        self._cuda = device

    def current(self) -> AbstractContextManager[Any]:
        """See :meth:`Cuda.current`."""
        return self._cuda.current()

    def made(self, shape: tuple[int, ...], dtype: str) -> DeviceArray:
        """A new array of CuPy's, uninitialised. Those of bfloat16 are of its bits, as uint16.

        Raises:
            MemoryLimitError: there is no room for it.
        """
        kind = device_type(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        return self._cuda.cupy.ndarray(shape, kind, self._cuda.room(nbytes))

    def here(self, name: str, array: Any) -> DeviceArray:
        """An array of any library as CuPy's; CuPy's current stream waits for what its library still does to it.

        Raises:
            ArgumentError: it is on another GPU or no array, or CuPy cannot view it.
        """
        cp = self._cuda.cupy
        number = self._cuda.target.ordinal
        if isinstance(array, np.ndarray | np.generic):
            return self._copied(np.asarray(array))
        if isinstance(array, cp.ndarray):
            self._on_this(name, int(array.device.id))
            return array
        kind = f"{name} is a {type(array).__name__}"
        try:
            if hasattr(array, "__dlpack_device__"):
                where, place = array.__dlpack_device__()
                if int(where) in _ON_HOST:
                    return self._copied(np.from_dlpack(array))
                if int(where) not in _CUDA:
                    raise ArgumentError(f"{kind} on a device of another kind; copy it to the host, or to GPU {number}")
                self._on_this(name, int(place))
                return cp.from_dlpack(array)
            if hasattr(array, "__cuda_array_interface__"):
                view = cp.asarray(array)
                self._on_this(name, int(view.device.id))
                return view
        except ArgumentError:
            raise
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ArgumentError(f"{kind} that CuPy cannot view ({reason}); copy it to a CuPy array") from error
        raise ArgumentError(f"{kind}, not an array of numpy, CuPy, or a library that speaks DLPack")

    def view(self, name: str, array: Any) -> DeviceArray:
        """As :meth:`here`, whatever CuPy's current device is."""
        with self._cuda.current():
            return self.here(name, array)

    def on_host(self, name: str, array: Any) -> Array:
        """A copy as numpy's, when the current stream is done; numpy's own as it is.

        Raises:
            ArgumentError: as :meth:`here`.
        """
        if isinstance(array, np.ndarray):
            return array
        found: Array = self.view(name, array).get()
        return found

    def _copied(self, host: Array) -> DeviceArray:
        return self._cuda.cupy.asarray(host.view(np.uint16) if host.dtype.name == "bfloat16" else host)

    def _on_this(self, name: str, number: int) -> None:
        mine = self._cuda.target.ordinal
        if number != mine:
            raise ArgumentError(
                f"{name} is on GPU {number}, and the program on GPU {mine}; copy it there, or compile for 'cuda:{number}'"
            )
