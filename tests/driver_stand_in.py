"""A ``libcuda.so.1`` whose functions are Python's, and whose GPU is the machine for PTX: what a library that was exported calls.

It is a library, written by our own emitter, that jumps to where a table says; the loader knows it by its name from then on, so
that whoever opens the driver in this process gets it. Load it in processes of their own alone. As with CuPy's stand-in nothing is
done before somebody waits, memory holds rubbish at first, and what is not the GPU's memory cannot be used on it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np

from ansorlite.codegen.driver import LIBRARY
from ansorlite.codegen.driver_calls import CALLED
from ansorlite.codegen.machine import machine
from ansorlite.export.link import link
from ansorlite.runtime.arguments import empty
from ansorlite.target import this_machine
from tests.ptx_machine import PtxError, launch

#: Of each function, as LLVM has them.
SIGNATURES: Final = {
    "cuInit": "i32",
    "cuDeviceGet": "ptr i32",
    "cuDeviceGetAttribute": "ptr i32 i32",
    "cuDevicePrimaryCtxRetain": "ptr i32",
    "cuDevicePrimaryCtxRelease": "i32",
    "cuCtxPushCurrent": "ptr",
    "cuCtxPopCurrent": "ptr",
    "cuModuleLoadData": "ptr ptr",
    "cuModuleUnload": "ptr",
    "cuModuleGetFunction": "ptr ptr ptr",
    "cuFuncSetAttribute": "ptr i32 i32",
    "cuMemAlloc": "ptr i64",
    "cuMemFree": "i64",
    "cuMemcpyAsync": "i64 i64 i64 ptr",
    "cuPointerGetAttribute": "ptr i32 i64",
    "cuStreamSynchronize": "ptr",
    "cuLaunchKernel": "ptr i32 i32 i32 i32 i32 i32 i32 ptr ptr ptr",
    "cuGetErrorName": "i32 ptr",
    "cuEventCreate": "ptr i32",
    "cuEventRecord": "ptr ptr",
    "cuEventElapsedTime": "ptr ptr ptr",
    "cuEventDestroy": "ptr",
}
_TYPES: Final = {"i32": ctypes.c_int, "i64": ctypes.c_uint64, "ptr": ctypes.c_void_p}
_NAMES: Final = {1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY", 101: b"CUDA_ERROR_INVALID_DEVICE"}
_NAMES |= {100: b"CUDA_ERROR_NO_DEVICE", 218: b"CUDA_ERROR_INVALID_PTX", 500: b"CUDA_ERROR_NOT_FOUND"}
_NAMES |= {700: b"CUDA_ERROR_ILLEGAL_ADDRESS", 201: b"CUDA_ERROR_INVALID_CONTEXT"}
_HANDLES: Final = 0x1000


class FailedError(Exception):
    """What a function answers."""


class Driver:
    """
    Attributes:
        calls: names of what was called, in order, without copies' and launches' arguments.
        refuse: a function → what it answers from now on.
        room: bytes of memory that are left.
        capability: of the GPU.
        launched: kernels that ran.
        events: those that nobody has destroyed, and the time of each: a launch or a copy takes a millisecond.
        copied: bytes of each copy to the host, and to the GPU or within it, that was done.
    """

    def __init__(self, folder: Path) -> None:
        self.calls: list[str] = []
        self.refuse: dict[str, int] = {}
        self.room = 1 << 30
        self.capability = (8, 0)
        self.launched: list[str] = []
        self.copied: list[int] = []
        self.events: dict[int, int | None] = {}
        self.clock = 0
        self.retained = 0
        self.stack = 0
        self.broken = 0
        self._memory: dict[int, np.ndarray] = {}
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        self._modules: dict[int, str] = {}
        self._functions: dict[int, tuple[str, str, list[int]]] = {}
        self._names = {number: ctypes.create_string_buffer(name) for number, name in _NAMES.items()}
        self._next = _HANDLES
        path = folder / LIBRARY
        _build(path, folder)
        self._library = ctypes.CDLL(str(path))
        self._kept = []
        for name, kinds in SIGNATURES.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[each] for each in kinds.split()))
            function = kind(self._answering(name))
            self._kept.append(function)
            ctypes.c_void_p.in_dll(self._library, f"table_{name}").value = ctypes.cast(function, ctypes.c_void_p).value

    def _answering(self, name: str) -> Callable[..., int]:
        def answer(*arguments: Any) -> int:
            self.calls.append(name)
            try:
                if name in self.refuse:
                    raise FailedError(self.refuse[name])
                if self.broken and name not in ("cuGetErrorName", "cuCtxPopCurrent"):
                    raise FailedError(self.broken)
                getattr(self, name)(*(argument or 0 for argument in arguments))
            except FailedError as failed:
                return int(failed.args[0])
            return 0

        return answer

    # What tests ask -----------------------------------------------------------------------------------------------------
    def array(self, content: np.ndarray, offset: int = 0) -> GpuArray:
        """A copy on the GPU, so many bytes from the beginning of its memory."""
        address = self._alloc(content.nbytes + offset) + offset
        self._at(address, content.nbytes)[...] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        return GpuArray(self, address, content.shape, content.dtype)

    @property
    def memories(self) -> int:
        """How many blocks of memory somebody has."""
        return len(self._memory)

    # The driver ---------------------------------------------------------------------------------------------------------
    def cuInit(self, flags: int) -> None:  # noqa: N802
        assert flags == 0

    def cuDeviceGet(self, place: int, number: int) -> None:  # noqa: N802
        if number != 0:
            raise FailedError(101)
        _store(place, ctypes.c_int, 7)

    def cuDeviceGetAttribute(self, place: int, attribute: int, device: int) -> None:  # noqa: N802
        assert device == 7
        _store(place, ctypes.c_int, self.capability[{75: 0, 76: 1}[attribute]])

    def cuDevicePrimaryCtxRetain(self, place: int, device: int) -> None:  # noqa: N802
        assert device == 7
        self.retained += 1
        _store(place, ctypes.c_void_p, 0xC0)

    def cuDevicePrimaryCtxRelease(self, device: int) -> None:  # noqa: N802
        assert device == 7
        self.retained -= 1

    def cuCtxPushCurrent(self, context: int) -> None:  # noqa: N802
        assert context == 0xC0
        self.stack += 1

    def cuCtxPopCurrent(self, place: int) -> None:  # noqa: N802
        if not self.stack:
            raise FailedError(201)
        self.stack -= 1
        _store(place, ctypes.c_void_p, 0xC0)

    def cuModuleLoadData(self, place: int, image: int) -> None:  # noqa: N802
        self._current()
        ptx = ctypes.string_at(image).decode()
        if ".entry" not in ptx:
            raise FailedError(218)
        self._modules[self._handle()] = ptx
        _store(place, ctypes.c_void_p, self._next)

    def cuModuleUnload(self, module: int) -> None:  # noqa: N802
        self._current()
        del self._modules[module]

    def cuModuleGetFunction(self, place: int, module: int, name: int) -> None:  # noqa: N802
        symbol = ctypes.string_at(name).decode()
        if f".entry {symbol}(" not in self._modules[module]:
            raise FailedError(500)
        self._functions[self._handle()] = (self._modules[module], symbol, [48 << 10])
        _store(place, ctypes.c_void_p, self._next)

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:  # noqa: N802
        assert attribute == 8
        self._functions[function][2][0] = value

    def cuMemAlloc(self, place: int, nbytes: int) -> None:  # noqa: N802
        self._current()
        _store(place, ctypes.c_uint64, self._alloc(nbytes))

    def cuMemFree(self, address: int) -> None:  # noqa: N802
        self._current()
        self.room += len(self._memory.pop(address))

    def cuMemcpyAsync(self, target: int, source: int, nbytes: int, stream: int) -> None:  # noqa: N802
        self._current()
        content = None if self._is_here(source) else np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(source)).copy()

        def copy() -> None:
            self.clock += 1
            data = self._at(source, nbytes).copy() if content is None else content
            if self._is_here(target):
                self._at(target, nbytes)[...] = data
            else:
                ctypes.memmove(target, data.ctypes.data, nbytes)
            self.copied.append(nbytes)

        self._waiting.setdefault(stream, []).append(copy)

    def cuPointerGetAttribute(self, place: int, attribute: int, address: int) -> None:  # noqa: N802
        assert attribute == 2
        if not self._is_here(address):
            raise FailedError(1)
        _store(place, ctypes.c_int, 2)

    def cuStreamSynchronize(self, stream: int) -> None:  # noqa: N802
        self._current()
        for what in self._waiting.pop(stream, []):
            what()

    def cuLaunchKernel(self, function: int, *sizes_and_more: int) -> None:  # noqa: N802
        self._current()
        *sizes, shared, stream, parameters, extra = sizes_and_more
        ptx, symbol, most = self._functions[function]
        if shared > most[0]:
            raise FailedError(1)
        assert sizes[1:3] == [1, 1]
        assert sizes[4:] == [1, 1]
        assert extra == 0
        count = ptx.split(f".entry {symbol}(")[1].split(")")[0].count(".param")
        pointers = [ctypes.c_void_p.from_address(parameters + 8 * n).value for n in range(count)]
        addresses = [ctypes.c_uint64.from_address(pointer or 0).value for pointer in pointers]

        def run() -> None:
            self.clock += 1
            self.launched.append(symbol)
            parts = []
            for address in addresses:
                whole = self._at(address)
                behind = min((other - address for other in addresses if 0 < other - address < len(whole)), default=len(whole))
                parts.append(whole[:behind])
            try:
                launch(ptx, sizes[0], parts, threads=sizes[3], shared=shared, kernel=symbol)
            except PtxError:
                self.broken = 700
                raise FailedError(700) from None

        self._waiting.setdefault(stream, []).append(run)

    def cuGetErrorName(self, number: int, place: int) -> None:  # noqa: N802
        if number not in self._names:
            raise FailedError(1)
        _store(place, ctypes.c_void_p, ctypes.addressof(self._names[number]))

    def cuEventCreate(self, place: int, flags: int) -> None:  # noqa: N802
        self._current()
        assert flags == 0
        self.events[self._handle()] = None
        _store(place, ctypes.c_void_p, self._next)

    def cuEventRecord(self, event: int, stream: int) -> None:  # noqa: N802
        self._current()

        def now() -> None:
            self.events[event] = self.clock

        assert event in self.events
        self._waiting.setdefault(stream, []).append(now)

    def cuEventElapsedTime(self, place: int, begin: int, end: int) -> None:  # noqa: N802
        first, last = self.events[begin], self.events[end]
        if first is None or last is None:
            raise FailedError(1)
        _store(place, ctypes.c_float, last - first)

    def cuEventDestroy(self, event: int) -> None:  # noqa: N802
        del self.events[event]

    # Its insides --------------------------------------------------------------------------------------------------------
    def _current(self) -> None:
        if not self.stack:
            raise FailedError(201)

    def _handle(self) -> int:
        self._next += 0x10
        return self._next

    def _alloc(self, nbytes: int) -> int:
        if nbytes > self.room:
            raise FailedError(2)
        self.room -= nbytes
        memory = empty((nbytes,), "uint8")
        memory[...] = 0xCD
        address = int(memory.ctypes.data)
        self._memory[address] = memory
        return address

    def _is_here(self, address: int) -> bool:
        return any(begin <= address < begin + len(block) for begin, block in self._memory.items())

    def _at(self, address: int, nbytes: int | None = None) -> np.ndarray:
        for begin, block in self._memory.items():
            if begin <= address < begin + len(block):
                found = block[address - begin :]
                if nbytes is None or nbytes <= len(found):
                    return found[:nbytes]
        self.broken = 700
        raise FailedError(700)


class GpuArray:
    """An array there, as CuPy and PyTorch have them."""

    def __init__(self, driver: Driver, address: int, shape: tuple[int, ...], dtype: Any) -> None:
        self._driver = driver
        self.stream: int | None = None
        self.facts = {"shape": shape, "typestr": np.dtype(dtype).str, "data": (address, False), "strides": None, "version": 3}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.facts, "stream": self.stream}

    def get(self) -> np.ndarray:
        """What is there now."""
        kind = np.dtype(self.facts["typestr"])
        nbytes = int(np.prod(self.facts["shape"])) * kind.itemsize
        return self._driver._at(self.facts["data"][0], nbytes).copy().view(kind).reshape(self.facts["shape"])


def _store(place: int, kind: Any, value: int) -> None:
    kind.from_address(place).value = value


def _build(path: Path, folder: Path) -> None:
    """The library itself."""
    target = this_machine()
    lines = [f'target triple = "{target.triple}"']
    for name, symbol in CALLED.items():
        kinds = SIGNATURES[name].split()
        given = ", ".join(f"{kind} %p{number}" for number, kind in enumerate(kinds))
        lines += [
            f"@table_{name} = global ptr null",
            f"define i32 @{symbol}({given}) {{",
            f"  %function = load ptr, ptr @table_{name}",
            f"  %answer = call i32 %function({given})",
            "  ret i32 %answer",
            "}",
        ]
    module = llvm.parse_assembly("\n".join(lines), llvm.create_context())
    file = folder / "driver.o"
    file.write_bytes(machine(target).emit_object(module))
    link([file], path, [*CALLED.values(), *(f"table_{name}" for name in CALLED)], folder, target)
