"""A CuPy whose GPUs are the machine for PTX: so much of it as ansorlite asks for, with what real ones do to the careless.

Work is only done when somebody waits for it: until then a stream is a row of promises. Memory has addresses, holds rubbish when
it is given out, and is nobody's once the stream is done with it. A fault breaks the GPU for the whole process. Nothing may be
allocated, waited for, or done on another stream while a stream is captured.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tests.ptx_machine import PtxError, launch

_GAP: Final = 1 << 20
_PAGE: Final = 512

#: Those of a GPU of which there is none, by CUDA's numbers.
ATTRIBUTES: Final = {
    "MultiProcessorCount": (16, 4),
    "WarpSize": (10, 32),
    "MaxThreadsPerBlock": (1, 1024),
    "MaxSharedMemoryPerBlockOptin": (97, 99 << 10),
    "MaxSharedMemoryPerMultiprocessor": (81, 100 << 10),
    "MaxRegistersPerMultiprocessor": (82, 65_536),
    "MaxThreadsPerMultiProcessor": (39, 1536),
    "MaxBlocksPerMultiprocessor": (106, 16),
    "L2CacheSize": (38, 1 << 20),
    "MemoryClockRate": (36, 1_000_000),
    "GlobalMemoryBusWidth": (37, 256),
    "ClockRate": (13, 1_000_000),
}


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


@dataclass(eq=False)
class Block:
    """Memory of a GPU that somebody has."""

    begin: int
    content: np.ndarray
    gpu: Gpu

    def __del__(self) -> None:
        self.gpu.given_back(self)


@dataclass(eq=False)
class Gpu:
    """
    Attributes:
        total: bytes of memory.
        broken: what it says to everybody, since a program has broken it.
        time: seconds, on its clock.
        launched: names of the kernels that ran.
    """

    number: int
    total: int
    broken: str = ""
    time: float = 0.0
    used: int = 0
    end: int = _GAP
    blocks: dict[int, Any] = field(default_factory=dict)
    launched: list[str] = field(default_factory=list)

    #: The stream that is current there.
    current: Callable[[], Stream | None] = lambda: None

    def given_back(self, block: Block) -> None:
        """Its address is nobody's once the stream has done what was asked of it before."""
        self.used -= len(block.content)
        blocks, begin, stream = self.blocks, block.begin, self.current()
        if stream is not None and stream.captured is None:
            stream.waiting.append(lambda: blocks.pop(begin, None))

    def alloc(self, nbytes: int) -> Block:
        size = -(-nbytes // _PAGE) * _PAGE
        if self.used + size > self.total:
            raise OutOfMemoryError(f"Out of memory allocating {size} bytes")
        self.used += size
        block = Block(((self.number + 1) << 44) + self.end, np.full(size, 0xCD, np.uint8), self)
        self.end += size + _GAP
        self.blocks[block.begin] = types.SimpleNamespace(content=block.content, begin=block.begin)
        return block

    def at(self, address: int, nbytes: int | None = None) -> np.ndarray:
        """Memory from an address on."""
        for begin, block in self.blocks.items():
            if begin <= address < begin + len(block.content):
                found: np.ndarray = block.content[address - begin :]
                if nbytes is None or nbytes <= len(found):
                    return found[:nbytes]
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")


class StandIn:
    """The module ``cupy``, and its GPUs."""

    def __init__(self, gpus: int = 1, total: int = 256 << 20, driver: bool = True) -> None:
        self.gpus = [Gpu(number, total) for number in range(gpus)]
        self.driver = driver
        self.device = 0
        self.null = [Stream(self, number, 0) for number in range(gpus)]
        self.current: list[Stream] = list(self.null)
        for gpu in self.gpus:
            gpu.current = lambda number=gpu.number: self.current[number]  # type: ignore[misc]
        self.capturing: Stream | None = None
        self.module = self._module()

    @property
    def gpu(self) -> Gpu:
        return self.gpus[self.device]

    def checked(self) -> None:
        if self.gpu.broken:
            raise CUDADriverError(self.gpu.broken)

    def not_capturing(self, what: str) -> None:
        if self.capturing is not None:
            raise CUDARuntimeError(f"cudaErrorStreamCaptureUnsupported: {what} while a stream is captured")

    @contextmanager
    def installed(self) -> Iterator[StandIn]:
        """In the place of CuPy, for the time of a ``with``."""
        before = sys.modules.get("cupy")
        sys.modules["cupy"] = self.module
        try:
            yield self
        finally:
            if before is None:
                del sys.modules["cupy"]
            else:
                sys.modules["cupy"] = before

    # Memory -------------------------------------------------------------------------------------------------------------
    def alloc(self, nbytes: int) -> MemoryPointer:
        self.checked()
        self.not_capturing("memory is allocated")
        return MemoryPointer(self.gpu.alloc(nbytes), 0)

    def memcpy_async(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self.checked()
        gpu, on = self.gpu, self.stream(stream)
        if kind == 1:
            data = _host(source, nbytes).copy()
            on.do(lambda: np.copyto(gpu.at(target, nbytes), data))
        elif kind == 2:
            into = _host(target, nbytes)
            on.do(lambda: np.copyto(into, gpu.at(source, nbytes)))
        else:
            on.do(lambda: np.copyto(gpu.at(target, nbytes), gpu.at(source, nbytes).copy()))

    def memset_async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self.checked()
        gpu = self.gpu
        self.stream(stream).do(lambda: gpu.at(address, nbytes).fill(value))

    def stream(self, pointer: int) -> Stream:
        if pointer == 0:
            return self.null[self.device]
        return next(each for each in Stream.all if each.ptr == pointer)

    # The module ---------------------------------------------------------------------------------------------------------
    def _module(self) -> types.ModuleType:
        stand_in = self
        cupy = types.ModuleType("cupy")
        runtime, driver, cuda = types.SimpleNamespace(), types.SimpleNamespace(), types.SimpleNamespace()

        def count() -> int:
            if not self.driver:
                raise CUDARuntimeError(
                    "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
                )
            return len(self.gpus)

        runtime.CUDARuntimeError = CUDARuntimeError
        runtime.getDeviceCount = count
        runtime.driverGetVersion = lambda: 13000
        runtime.getDeviceProperties = lambda _: {"name": f"Stand-in {len(self.gpus)}".encode()}
        values = {}
        for name, (number, value) in ATTRIBUTES.items():
            setattr(runtime, f"cudaDevAttr{name}", number)
            values[number] = value
        runtime.deviceGetAttribute = lambda attribute, _: values[attribute]
        runtime.memcpyAsync, runtime.memsetAsync = self.memcpy_async, self.memset_async
        driver.CUDADriverError = CUDADriverError
        driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
        driver.funcSetAttribute = _set_attribute
        cuda.runtime, cuda.driver = runtime, driver
        cuda.alloc = self.alloc
        cuda.Device = lambda number: _Device(stand_in, number)
        cuda.Event = lambda: Event(stand_in)
        cuda.Stream = lambda **_: Stream(stand_in, stand_in.device)
        cuda.ExternalStream = lambda pointer, _: self.stream(pointer)
        cuda.get_current_stream = lambda: self.current[self.device]
        cuda.get_elapsed_time = lambda start, end: 1e3 * (end.time - start.time)
        cuda.UnownedMemory = lambda address, *_: (address,)
        cuda.MemoryPointer = lambda memory, offset: MemoryPointer(None, memory[0] + offset)
        cuda.function = types.SimpleNamespace(Module=lambda: _Module(stand_in))
        cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
        namespace: dict[str, Any] = {
            "cuda": cuda,
            "__version__": "0",
            "ndarray": _array_class(self),
            "asarray": self.asarray,
            "from_dlpack": self.from_dlpack,
            "empty": self.empty,
        }
        for name, value in namespace.items():
            setattr(cupy, name, value)
        return cupy

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float32) -> DeviceArray:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        made: DeviceArray = self.module.ndarray(shape, dtype, self.alloc(max(1, nbytes)))
        return made

    def asarray(self, array: Any) -> DeviceArray:
        if isinstance(array, DeviceArray):
            return array
        if isinstance(array, np.ndarray):
            made = self.empty(array.shape, array.dtype)
            whole = np.ascontiguousarray(array)
            source = whole.__array_interface__["data"][0]
            self.memcpy_async(made.data.ptr, source, whole.nbytes, 1, self.current[self.device].ptr)
            return made
        facts = array.__cuda_array_interface__
        pointer = MemoryPointer(None, facts["data"][0])
        view: DeviceArray = self.module.ndarray(facts["shape"], np.dtype(facts["typestr"]), pointer, facts.get("strides"))
        view.owner = array
        return view

    def from_dlpack(self, array: Any) -> DeviceArray:
        """Of what tests make of it: the capsule is the array itself."""
        capsule = array.__dlpack__(stream=self.current[self.device].ptr)
        return self.asarray(capsule)


class MemoryPointer:
    """
    Attributes:
        ptr: the address.
    """

    def __init__(self, block: Block | None, begin: int) -> None:
        self.block = block
        self.ptr = begin + (block.begin if block is not None else 0)


class DeviceArray:
    """An array on a GPU: ``cupy.ndarray`` is a subclass of this that knows its stand-in."""

    stand_in: StandIn

    def __init__(self, shape: tuple[int, ...], dtype: Any, memptr: MemoryPointer, strides: tuple[int, ...] | None = None) -> None:
        self.shape, self.dtype, self.data, self.owner = tuple(shape), np.dtype(dtype), memptr, None
        self.strides = strides or _strides(self.shape, self.dtype.itemsize)
        self.device = types.SimpleNamespace(id=(memptr.ptr >> 44) - 1)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    @property
    def flags(self) -> Any:
        return types.SimpleNamespace(c_contiguous=self.strides == _strides(self.shape, self.dtype.itemsize))

    @property
    def T(self) -> DeviceArray:  # noqa: N802
        view = type(self)(self.shape[::-1], self.dtype, self.data, self.strides[::-1])
        view.owner = self
        return view

    def __getitem__(self, index: Any) -> DeviceArray:
        """A view, by slices."""
        dummy = np.lib.stride_tricks.as_strided(np.zeros(self.nbytes or 1, np.uint8).view(self.dtype), self.shape, self.strides)
        part = dummy[index]
        begin = part.__array_interface__["data"][0] - dummy.__array_interface__["data"][0]
        view = type(self)(part.shape, self.dtype, MemoryPointer(None, self.data.ptr + begin), part.strides)
        view.owner = self
        return view

    def __setitem__(self, index: Any, value: DeviceArray) -> None:
        part, gpu = self[index], self.stand_in.gpu

        def run() -> None:
            np.ndarray(part.shape, part.dtype, gpu.at(part.data.ptr), 0, part.strides)[...] = value._now()

        self.stand_in.current[self.stand_in.device].do(run)

    def copy(self) -> DeviceArray:
        made = self.stand_in.empty(self.shape, self.dtype)
        gpu, source, target = self.stand_in.gpu, self, made

        def run() -> None:
            gpu.at(target.data.ptr, target.nbytes)[...] = source._now().reshape(-1).view(np.uint8)

        self.stand_in.current[self.stand_in.device].do(run)
        return made

    def get(self) -> np.ndarray:
        """On the host, when the current stream is done."""
        self.stand_in.current[self.stand_in.device].synchronize()
        return self._now()

    def _now(self) -> np.ndarray:
        gpu = self.stand_in.gpus[self.device.id]
        memory = gpu.at(self.data.ptr)
        return np.ascontiguousarray(np.ndarray(self.shape, self.dtype, memory, 0, self.strides))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data.ptr, False),
            "strides": None if self.flags.c_contiguous else self.strides,
            "version": 3,
        }


def _array_class(stand_in: StandIn) -> type[DeviceArray]:
    return type("ndarray", (DeviceArray,), {"stand_in": stand_in})


class Stream:
    """What was asked for, in order, until somebody waits."""

    all: Final[list[Stream]] = []

    def __init__(self, stand_in: StandIn, device: int, pointer: int | None = None) -> None:
        self._stand_in = stand_in
        self._device = device
        self.waiting: list[Callable[[], None]] = []
        self.captured: list[Callable[[], None]] | None = None
        self.ptr = len(self.all) + 1 if pointer is None else pointer
        if pointer is None:
            self.all.append(self)
        self._before: list[Stream] = []

    def __enter__(self) -> Stream:
        self._before.append(self._stand_in.current[self._device])
        self._stand_in.current[self._device] = self
        return self

    def __exit__(self, *_: object) -> None:
        self._stand_in.current[self._device] = self._before.pop()

    def do(self, what: Callable[[], None]) -> None:
        if self.captured is not None:
            self.captured.append(what)
            return
        self._stand_in.not_capturing("something is done on another one")
        self.waiting.append(what)

    def synchronize(self) -> None:
        self._stand_in.not_capturing("one is waited for")
        gpu = self._stand_in.gpus[self._device]
        if gpu.broken:
            raise CUDADriverError(gpu.broken)
        waiting, self.waiting = self.waiting, []
        for what in waiting:
            try:
                what()
            except (PtxError, CUDADriverError) as error:
                gpu.broken = f"CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered ({error})"
                raise CUDADriverError(gpu.broken) from None

    def is_capturing(self) -> bool:
        return self.captured is not None

    def begin_capture(self) -> None:
        self._stand_in.not_capturing("another one is")
        self._stand_in.capturing, self.captured = self, []

    def end_capture(self) -> Graph:
        made = Graph(self._stand_in, self.captured or [])
        self._stand_in.capturing = self.captured = None
        return made


@dataclass
class Graph:
    stand_in: StandIn
    steps: list[Callable[[], None]]

    def launch(self, stream: Stream) -> None:
        for step in self.steps:
            stream.do(step)


class Event:
    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        self.time = -1.0

    def record(self, stream: Stream) -> None:
        gpu = self._stand_in.gpu
        self._stream = stream

        def now() -> None:
            self.time = gpu.time

        stream.do(now)

    def synchronize(self) -> None:
        self._stream.synchronize()


class _Device:
    def __init__(self, stand_in: StandIn, number: int) -> None:
        self._stand_in, self._number = stand_in, number
        self._before: list[int] = []
        self.compute_capability = "86"

    def __enter__(self) -> _Device:
        self._before.append(self._stand_in.device)
        self._stand_in.device = self._number
        return self

    def __exit__(self, *_: object) -> None:
        self._stand_in.device = self._before.pop()


class _Function:
    """One kernel.

    Attributes:
        shared: bytes of shared memory that a launch may ask for.
    """

    def __init__(self, stand_in: StandIn, ptx: str, name: str) -> None:
        self._stand_in, self._ptx, self._name = stand_in, ptx, name
        self.shared = 48 << 10

    @property
    def ptr(self) -> _Function:
        return self

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], arguments: Any, shared_mem: int = 0, stream: Any = None
    ) -> None:
        self._stand_in.checked()
        if shared_mem > self.shared:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        assert all(isinstance(argument, np.uint64) for argument in arguments), "CuPy takes a word by its type"
        gpu, addresses = self._stand_in.gpu, [int(argument) for argument in arguments]

        def run() -> None:
            gpu.launched.append(self._name)
            gpu.time += 1e-6 * grid[0]
            launch(self._ptx, grid[0], _parts(gpu, addresses), threads=block[0], shared=shared_mem, kernel=self._name)

        stream.do(run)


def _parts(gpu: Gpu, addresses: list[int]) -> list[np.ndarray]:
    """The memory of each argument: up to where the next argument in the same block begins."""
    found = []
    for address in addresses:
        memory = gpu.at(address)
        behind = min((other - address for other in addresses if 0 < other - address < len(memory)), default=len(memory))
        found.append(memory[:behind])
    return found


class _Module:
    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def load(self, image: bytes) -> None:
        self._stand_in.checked()
        if not image.lstrip().startswith(b"//"):
            raise CUDADriverError("CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid")
        self._ptx = image.decode()

    def get_function(self, name: str) -> _Function:
        if f".entry {name}(" not in self._ptx:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        return _Function(self._stand_in, self._ptx, name)


def _set_attribute(function: _Function, attribute: int, value: int) -> None:
    if attribute != 8 or value > ATTRIBUTES["MaxSharedMemoryPerBlockOptin"][1]:
        raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
    function.shared = value


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _host(address: int, nbytes: int) -> np.ndarray:
    """The host's memory, by its address."""
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), np.uint8)
