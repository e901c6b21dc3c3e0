"""A model that was exported for an NVIDIA GPU, in Python: nothing but the driver is needed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ansorlite.errors import ArgumentError, DeviceLostError, MemoryLimitError, TargetError
from ansorlite.export.description import Description, Parameter
from ansorlite.runtime.arguments import Array, ArrayType, Signature, by_name, numpy_type
from ansorlite.runtime.not_copied import NotCopied
from ansorlite.runtime.step_timing import step_medians

_CREATE: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
_GO: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_GO_PROFILED: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
)
_DESTROY: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ERROR: Final = ctypes.CFUNCTYPE(ctypes.c_char_p)
_CODE: Final = ctypes.CFUNCTYPE(ctypes.c_int)

#: The driver's number of: there is no memory left.
_NO_MEMORY: Final = 2
#: Streams of ``__cuda_array_interface__`` that are the default one, which the model runs on.
_DEFAULT: Final = (None, 0, 1)


class GpuSymbols(ctypes.Structure):
    """What the symbol ``ansorlite_model`` is (``export/gpu_side.py``)."""

    _fields_ = (
        ("description", ctypes.c_char_p),
        ("create", ctypes.c_void_p),
        ("go", ctypes.c_void_p),
        ("destroy", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("profile", ctypes.c_void_p),
    )


class LoadedGpuModel(NotCopied):
    """A model that runs on a GPU. Any number of threads may call it at once.

    Arrays on the host are copied there and back. One with ``__cuda_array_interface__`` (of CuPy, of PyTorch) is used where it is.

    Attributes:
        inputs, outputs: name → shape and dtype.
        description: what the library says about itself.
    """

    elsewhere = "load its library with ansorlite.load(path)"

    def __init__(
        self, description: Description, library: ctypes.CDLL, symbols: GpuSymbols, weights: os.PathLike[str] | None, device: int
    ) -> None:
        """
        Args:
            weights: the file that they are in; ``None`` if they are inside of the library.
            device: the GPU's number.

        Raises:
            TargetError: there is no driver, no such GPU, or one of another architecture.
            MemoryLimitError: it has no room for the weights and temporaries.
        """
        self.description = description
        self.inputs: Mapping[str, Parameter] = {parameter.name: parameter for parameter in description.inputs}
        self.outputs: Mapping[str, Parameter] = {parameter.name: parameter for parameter in description.outputs}
        self._library = library
        self._signature = Signature(self.inputs, self.outputs)
        self._place = (device, None if weights is None else os.fsencode(weights))
        self._create: Callable[..., int | None] = _CREATE(symbols.create)
        self._go: Callable[..., int] = _GO(symbols.go)
        self._profile: Callable[..., int] = _GO_PROFILED(symbols.profile)
        self._destroy: Callable[[int], None] = _DESTROY(symbols.destroy)
        self._error: Callable[[], bytes] = _ERROR(symbols.error)
        self._code: Callable[[], int] = _CODE(symbols.code)
        self._idle = [self._made()]

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Any]:
        """Run the model: see :class:`ansorlite.graph.executable.Executable`. It is waited for, and outputs are numpy's.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
            DeviceLostError: the GPU fails.
        """
        return self._run(by_name(self.inputs, arrays, named), {})

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model, and write outputs where the caller wants them: on the host, or on the GPU.

        Raises:
            ArgumentError: as for a call; or ``out`` does not fit.
            DeviceLostError: the GPU fails.
        """
        return self._run(by_name(self.inputs, (inputs,), {}), out)

    def step_seconds(self, inputs: Mapping[str, Any], runs: int = 30) -> tuple[float, ...]:
        """How long each of ``description.steps`` takes in place, by the GPU's events: medians, in seconds.

        Args:
            inputs: name → array.
            runs: how often the model runs.

        Raises:
            ArgumentError: as for a call; or ``runs`` is less than 1.
            DeviceLostError: the GPU fails.
        """

        def once() -> Array:
            nanoseconds = np.zeros(len(self.description.steps), np.int64)
            self._run(by_name(self.inputs, (inputs,), {}), {}, nanoseconds)
            return nanoseconds

        return tuple((step_medians(once, runs) * 1e-9).tolist())

    def __del__(self) -> None:
        for instance in getattr(self, "_idle", ()):
            self._destroy(instance)

    def _made(self) -> int:
        instance = self._create(*self._place)
        if instance is None:
            said = self._error().decode(errors="replace")
            raise (MemoryLimitError if self._code() == _NO_MEMORY else TargetError)(said)
        return instance

    def _run(self, found: Mapping[str, Any], out: Mapping[str, Any], nanoseconds: Array | None = None) -> dict[str, Any]:
        """
        Args:
            nanoseconds: where it is written how long each step took.
        """
        there = {name: array for name, array in found.items() if _on_gpu(array)}
        on_host = Signature({n: kind for n, kind in self.inputs.items() if n not in there}, {})
        given = iter(on_host.given(({n: array for n, array in found.items() if n not in there},), {}))
        written = {name: array for name, array in out.items() if _on_gpu(array)}
        results: dict[str, Any] = dict(written)
        rest = Signature(self.inputs, {n: kind for n, kind in self.outputs.items() if n not in written})
        if unknown := [name for name in out if name not in self.outputs]:
            raise ArgumentError(f"output {unknown[0]!r} is unknown; the model's outputs are: {', '.join(self.outputs)}")
        made = rest.results({name: array for name, array in out.items() if name not in written})
        results.update(zip(rest.outputs, made, strict=True))
        streams = {_stream(array) for array in (*there.values(), *written.values())} - {0}
        if len(streams) > 1:
            raise ArgumentError("the arrays on the GPU are of several streams; wait for them, and give them out on one")
        kept = [there[name] if name in there else next(given) for name in self.inputs]
        places = [_place(f"input {n!r}", array, kind) for (n, kind), array in zip(self.inputs.items(), kept, strict=True)]
        places += [_place(f"out for {name!r}", results[name], kind) for name, kind in self.outputs.items()]
        pointers = (ctypes.c_void_p * len(places))(*places)
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._made()
        asked = (instance, next(iter(streams), 0), 1, pointers)
        failed = self._go(*asked) if nanoseconds is None else self._profile(*asked, nanoseconds.ctypes.data)
        said = self._error().decode(errors="replace") if failed else ""
        self._idle.append(instance)
        if failed:
            raise (MemoryLimitError if failed == _NO_MEMORY else DeviceLostError)(said)
        return {name: results[name] for name in self.outputs}


def _on_gpu(array: Any) -> bool:
    return not isinstance(array, np.ndarray | np.generic) and hasattr(array, "__cuda_array_interface__")


def _stream(array: Any) -> int:
    """That the array is made on; 0: the default one."""
    stream = array.__cuda_array_interface__.get("stream")
    return 0 if stream in _DEFAULT else int(stream)


def _place(what: str, array: Any, kind: ArrayType) -> int:
    """Where an array is. Those on the host are known to fit."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    facts = array.__cuda_array_interface__
    found, wanted = np.dtype(facts["typestr"]), numpy_type("uint16" if kind.dtype == "bfloat16" else kind.dtype)
    if tuple(facts["shape"]) != tuple(kind.shape):
        raise ArgumentError(f"{what} has shape {tuple(facts['shape'])}, but the model takes {kind.shape}")
    if found != wanted:
        raise ArgumentError(f"{what} is {found}, and not {wanted}; convert it")
    if facts.get("strides") is not None and tuple(facts["strides"]) != _strides(kind.shape, wanted.itemsize):
        raise ArgumentError(f"{what} is not contiguous; copy it first")
    return int(facts["data"][0])


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Of a contiguous array, in bytes."""
    found = [itemsize]
    for extent in reversed(shape[1:]):
        found.append(found[-1] * extent)
    return tuple(reversed(found)) if shape else ()
