"""An exported model in Python. Nothing that compiles, tunes or reads models is imported for it."""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ansorlite import processor
from ansorlite.errors import ArgumentError, ModelError, TargetError
from ansorlite.export.description import MODEL, Description, Parameter, parse
from ansorlite.export.load_gpu import GpuSymbols, LoadedGpuModel
from ansorlite.export.opened import open_library
from ansorlite.runtime.arguments import Array, Signature
from ansorlite.runtime.builtin import DirectCalls, builtins
from ansorlite.runtime.host import HostSpace
from ansorlite.runtime.model_call import ModelCall, direct_arguments
from ansorlite.runtime.not_copied import NotCopied
from ansorlite.runtime.pages import zeros
from ansorlite.runtime.step_timing import step_medians

_RUN: Final = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_PROFILE: Final = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_CHECKSUM: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64))


class _Symbols(ctypes.Structure):
    """What the symbol ``ansorlite_model`` is (``export/public_side.py``)."""

    _fields_ = (
        ("description", ctypes.c_char_p),
        ("entry", ctypes.c_void_p),
        ("profile", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("direct", ctypes.c_void_p),
        ("checksum", ctypes.c_void_p),
    )


def load(path: str | os.PathLike[str], *, share_weights: bool = False, device: int = 0) -> LoadedModel | LoadedGpuModel:
    """Load a model that ``Executable.export`` wrote, as the files are now; what becomes of them later changes nothing.

    A library is code, and loading it runs some: load only what you would run.

    Args:
        path: of the shared library. Its weights, if they are not inside, must lie beside it.
        share_weights: map the file of weights, which all processes that do so have in memory once, instead of reading it. Nobody
            may then write to that file, or cut it off, as long as the model is in use; to replace it, as an export does, is
            no harm. Of a model for a GPU they are always read.
        device: of a model for a GPU, the GPU's number.

    Raises:
        ArgumentError: it is no path.
        ModelError: there is no such file, it is not an exported model, it or its weights are damaged, or these are missing or
            those of another model.
        TargetError: it was compiled for another architecture, or the processor lacks what it was compiled for; or there is no
            driver, or no GPU of that kind.
        MemoryLimitError: the GPU has no room for it.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"an exported model is given by the path of its library, not by {path!r}")
    file = Path(path).absolute()
    if not file.is_file():
        raise ModelError(f"there is no file {os.fspath(path)}")
    try:
        library = open_library(file)
        symbols = _Symbols.in_dll(library, MODEL)
    except TargetError:
        raise
    except (OSError, ValueError) as error:
        raise ModelError(f"{os.fspath(path)} is not a model that ansorlite exported ({error})") from error
    description = parse((symbols.description or b"").decode(errors="replace"))
    if description.kind == "cuda":
        symbols_there = GpuSymbols.in_dll(library, MODEL)
        return LoadedGpuModel(description, library, symbols_there, _weights_file(description, file), device)
    if lacking := processor.missing(description.features):
        raise TargetError(
            f"the model was compiled for a processor with {', '.join(lacking)}, which this one lacks; export it here"
        )
    if reason := processor.other_vectors(description.sve_bytes):
        raise TargetError(f"the model was compiled for another processor: {reason}; export it here")
    return LoadedModel(description, library, symbols, _weights(description, symbols, file, share_weights))


def _weights(description: Description, symbols: _Symbols, library: Path, share: bool) -> Array | None:
    """What is in the file of weights; ``None`` if they are inside of the library, which has been checked."""
    file = _weights_file(description, library)
    if file is None:
        return None
    try:
        with file.open("rb", buffering=0) as opened:
            weights = _mapped(opened, description.weight_bytes) if share else _read(opened, description.weight_bytes)
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read ({error.strerror})") from error
    if weights is None or _checksum(weights, symbols) != description.checksum:
        raise ModelError(
            f"{file.name} is not the file of weights that belongs to {library.name}, or it is damaged; export the model again"
        )
    return weights


def _weights_file(description: Description, library: Path) -> Path | None:
    """``None``: they are inside of the library."""
    if description.weights is None:
        return None
    file = library.with_name(Path(description.weights).name)
    if not file.is_file():
        raise ModelError(f"the weights of {library.name} are missing: put the file {file.name} beside it")
    return file


def _mapped(file: io.FileIO, nbytes: int) -> Array | None:
    """All of a file of that size."""
    if os.fstat(file.fileno()).st_size != nbytes:
        return None
    return np.frombuffer(mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_READ), np.uint8)


def _read(file: io.FileIO, nbytes: int) -> Array | None:
    """The same, in memory of its own."""
    if os.fstat(file.fileno()).st_size != nbytes:
        return None
    weights, done = zeros(nbytes), 0
    while done < nbytes and (count := file.readinto(weights[done:].data)):
        done += count
    return weights if done == nbytes else None


def _checksum(weights: Array, symbols: _Symbols) -> str:
    result = ctypes.c_uint64()
    _CHECKSUM(symbols.checksum)(weights.ctypes.data, weights.nbytes, ctypes.byref(result))
    return f"{result.value:016x}"


class LoadedModel(NotCopied):
    """A model that runs. Any number of threads may call it at once.

    Attributes:
        inputs, outputs: name → shape and dtype.
        description: what the library says about itself.
    """

    elsewhere = "load its library with ansorlite.load(path)"

    def __init__(self, description: Description, library: ctypes.CDLL, symbols: _Symbols, weights: Array | None) -> None:
        self.description = description
        self.inputs: Mapping[str, Parameter] = {parameter.name: parameter for parameter in description.inputs}
        self.outputs: Mapping[str, Parameter] = {parameter.name: parameter for parameter in description.outputs}
        self._library = library
        self._weights = weights
        self._entry: Callable[[bytes], None] = _RUN(symbols.entry)
        self._profile: Callable[[bytes, int], None] = _PROFILE(symbols.profile)
        address = symbols.weights if weights is None else weights.ctypes.data
        signature = Signature(self.inputs, self.outputs)
        self._call = ModelCall(HostSpace(), signature, description.temporaries, address)
        self._direct: DirectCalls | None = None
        if description.object_head == object.__basicsize__:  # else it is another Python's
            self._direct = builtins(symbols.direct, symbols.entry, *direct_arguments(signature, description.temporaries, address))

    def __call__(self, /, *arrays: Any, **named: Any) -> dict[str, Array]:
        """Run the model: see :class:`ansorlite.graph.executable.Executable`.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
        """
        return self._call(self._run, arrays, named, None, self._direct)

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Array]:
        """Run the model, and write outputs where the caller wants them: see :class:`ansorlite.graph.executable.Executable`.

        Raises:
            ArgumentError: as for a call; or ``out`` does not fit.
        """
        return self._call(self._run, (inputs,), {}, out, self._direct)

    def step_seconds(self, inputs: Mapping[str, Any], runs: int = 30) -> tuple[float, ...]:
        """How long each of ``description.steps`` takes in place: medians, in seconds.

        Args:
            inputs: name → array.
            runs: how often the model runs.

        Raises:
            ArgumentError: as for a call; or ``runs`` is less than 1.
        """

        def once() -> Array:
            nanoseconds = np.zeros(len(self.description.steps), np.int64)

            def profiled(bases: Sequence[int]) -> None:
                self._profile(struct.pack(f"{len(bases)}P", *bases), nanoseconds.ctypes.data)

            self._call(profiled, (inputs,), {}, None)
            return nanoseconds

        return tuple((step_medians(once, runs) * 1e-9).tolist())

    def _run(self, bases: Sequence[int]) -> None:
        self._entry(struct.pack(f"{len(bases)}P", *bases))
