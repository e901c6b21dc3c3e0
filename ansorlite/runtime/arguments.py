"""What a model is called with: arrays by name or by place, from numpy or from whatever speaks DLPack, used where they are."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias

import ml_dtypes
import numpy as np

from ansorlite.alignment import ALIGNMENT
from ansorlite.errors import ArgumentError
from ansorlite.runtime.memory import no_room
from ansorlite.runtime.recycled import MAPPED, Recycled

Array: TypeAlias = np.ndarray[Any, Any]

# numpy's flag bits: contiguous, and aligned for the dtype.
_IN_PLACE: Final = 0x1 | 0x100


class ArrayType(Protocol):
    """Shape and dtype of an array."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Numpy's type of that name, or the one of ``ml_dtypes`` that numpy lacks."""
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


def empty(shape: tuple[int, ...], dtype: str) -> Array:
    """An uninitialised, contiguous array that begins at a cache line: a program's time does not depend on where its data fell."""
    return at_a_line(shape, numpy_type(dtype))


def at_a_line(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """As :func:`empty`, of numpy's dtype."""
    memory = np.empty(math.prod(shape) * kind.itemsize + ALIGNMENT, np.uint8)
    return np.ndarray(shape, kind, memory, -address_of(memory) % ALIGNMENT)


def maker(nbytes: int) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
    """What makes uninitialised results, of which the largest has so many bytes: the memory of very large ones is used again.

    They begin at cache lines: where several threads write parts of rows that do not, they write to the same lines, which then go
    back and forth between them.
    """
    return Recycled(at_a_line) if nbytes >= MAPPED else at_a_line


def address_of(array: Array) -> int:
    """Where the first element of a contiguous array is."""
    try:
        return _addressof(_from_buffer(array))  # type: ignore[arg-type]  # five times as fast as asking numpy
    except (TypeError, ValueError):  # read-only, empty, or of a dtype that Python's buffers do not know
        address: int = array.__array_interface__["data"][0]
        return address


_from_buffer = ctypes.c_char.from_buffer
_addressof = ctypes.addressof


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, by name, in call order."""

    inputs: Mapping[str, ArrayType]
    outputs: Mapping[str, ArrayType]

    @cached_property
    def _expected(self) -> tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]:
        return tuple((name, kind.shape, numpy_type(kind.dtype)) for name, kind in self.inputs.items())

    @cached_property
    def _made(self) -> tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]:
        return tuple((kind.shape, numpy_type(kind.dtype)) for kind in self.outputs.values())

    @cached_property
    def _empty(self) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
        return maker(max((math.prod(shape) * dtype.itemsize for shape, dtype in self._made), default=0))

    @property
    def output_bytes(self) -> int:
        """Of all outputs."""
        return sum(math.prod(shape) * dtype.itemsize for shape, dtype in self._made)

    def given(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> list[Array]:
        """The inputs in order, contiguous: the caller's own memory where that is possible.

        Args:
            arrays: one mapping of input name → array; or the inputs in order.
            named: inputs by name.

        Raises:
            ArgumentError: an input that is missing, unknown, given twice, or of another shape or dtype.
        """
        found = by_name(self.inputs, arrays, named)
        ready = []
        for name, shape, dtype in self._expected:
            array = found[name]
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                array = _checked(f"input {name!r}", array, self.inputs[name])
            ready.append(array if array.flags.num & _IN_PLACE == _IN_PLACE else np.array(array, order="C"))
        return ready

    def results(self, out: Mapping[str, Any] | None) -> list[Array]:
        """Arrays for the outputs, in order: those of ``out``, and new ones for the rest.

        Raises:
            ArgumentError: ``out`` names something else, or has an array that does not fit, or two that overlap.
            MemoryLimitError: there is no room for them.
        """
        if not out:
            try:
                return [self._empty(*facts) for facts in self._made]
            except MemoryError:
                raise no_room("outputs", self.output_bytes) from None
        unknown = [name for name in out if name not in self.outputs]
        if unknown:
            raise ArgumentError(f"output {unknown[0]!r} is unknown; the model's outputs are: {', '.join(self.outputs)}")
        ready = {name: _writable(name, array, self.outputs[name]) for name, array in out.items()}
        given = list(ready.items())
        for number, (name, array) in enumerate(given):
            if any(np.may_share_memory(array, other) for _, other in given[:number]):
                raise ArgumentError(f"out for {name!r} overlaps another output; pass separate arrays")
        made = zip(self.outputs, self._made, strict=True)
        return [ready[name] if name in ready else self._empty(*facts) for name, facts in made]


def by_name(inputs: Mapping[str, object], arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a model with these ``inputs`` is called with, name by name.

    Args:
        arrays: one mapping of input name → array; or the inputs in order.
        named: inputs by name.

    Raises:
        ArgumentError: an input that is missing, unknown or given twice.
    """
    match arrays:
        case (dict() | Mapping() as mapping,):  # dict first: whether something is a Mapping takes far longer to tell
            if not named and mapping.keys() == inputs.keys():
                return mapping
            arrays, named = (), {**mapping, **named}
    names = ", ".join(inputs)
    if len(arrays) > len(inputs):
        raise ArgumentError(f"{len(arrays)} arrays given, but the model's inputs are: {names}")
    found = dict(zip(inputs, arrays, strict=False))
    for name in named:
        if name in found or name not in inputs:
            raise ArgumentError(
                f"input {name!r} is {'given twice' if name in found else 'unknown'}; the model's inputs are: {names}"
            )
    found.update(named)
    missing = [name for name in inputs if name not in found]
    if missing:
        raise ArgumentError(f"input {missing[0]!r} is missing; the model's inputs are: {names}")
    return found


def _checked(what: str, array: Any, kind: ArrayType) -> Array:
    if isinstance(array, np.generic):
        array = np.asarray(array)
    elif not isinstance(array, np.ndarray):
        array = imported(what, array)
    if array.shape != kind.shape:
        raise ArgumentError(f"{what} has shape {array.shape}, but the model takes {kind.shape}")
    if array.dtype != numpy_type(kind.dtype):
        raise ArgumentError(f"{what} is {array.dtype}; convert it with .astype({kind.dtype!r})")
    return array  # type: ignore[no-any-return]


def imported(what: str, array: Any) -> Array:
    """A view of another library's array."""
    if not hasattr(array, "__dlpack__"):
        raise ArgumentError(f"{what} is a {type(array).__name__}, not a numpy array; convert it with numpy.asarray")
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ArgumentError(
            f"{what} is a {type(array).__name__} that numpy cannot view ({reason}); convert it to a numpy array"
        ) from error


def _writable(name: str, array: Any, kind: ArrayType) -> Array:
    checked = _checked(f"out for {name!r}", array, kind)
    flags = checked.flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        raise ArgumentError(f"out for {name!r} must be a contiguous, aligned, writeable array; pass one from numpy.empty")
    return checked
