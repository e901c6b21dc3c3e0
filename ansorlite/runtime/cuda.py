"""An NVIDIA GPU as a device, through CuPy: its memory, its streams, its clock.

Everything is done on CuPy's current stream of the thread that asks for it, and nothing waits for it but what hands numbers to the
host. CuPy keeps memory that is freed for the next who asks on the same stream.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ansorlite.codegen.entry import EntryStep
from ansorlite.codegen.object import Compiled, DeviceLaunch, DeviceObject, Form
from ansorlite.errors import ArgumentError, DeviceLostError, MemoryLimitError, TargetError
from ansorlite.loops.kernel_module import When
from ansorlite.machine import cuda
from ansorlite.runtime.arguments import Array, numpy_type
from ansorlite.runtime.builtin import Argument, DirectCalls
from ansorlite.runtime.cuda_steps import CudaSteps
from ansorlite.runtime.device import LoadedKernel, Memory
from ansorlite.runtime.device_memory import DeviceMemory, DeviceSpace
from ansorlite.runtime.device_peaks import measured_peaks
from ansorlite.runtime.memory import in_units
from ansorlite.runtime.own import own_device_object
from ansorlite.target import Target

if TYPE_CHECKING:
    from ansorlite.runtime.peaks import Peaks

#: Shared memory of a block beyond this must be asked for.
_COMMON_SHARED: Final = 48 << 10
#: Errors of a driver that say what is wrong with one launch, and spoil nothing.
_HARMLESS: Final = ("LAUNCH_OUT_OF_RESOURCES", "INVALID_VALUE", "LaunchOutOfResources", "InvalidValue", "InvalidConfiguration")
#: Errors of what a stream that is captured cannot do.
_CAPTURED: Final = ("StreamCapture", "STREAM_CAPTURE")
#: So many launches in a row are one graph: a driver begins them faster than Python does.
_IN_A_GRAPH: Final = 64
#: Fewer are launched one by one.
_FEW: Final = 4

_TO_DEVICE, _TO_HOST, _WITHIN = 1, 2, 3


class Cuda(DeviceSpace):
    """A :class:`~ansorlite.runtime.device.Device`: the GPU of this machine that ``target`` names."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    @cached_property
    def cupy(self) -> Any:
        """CuPy.

        Raises:
            TargetError: it is not here, or the GPU is not.
        """
        found = cuda.cupy()
        count = found.cuda.runtime.getDeviceCount()
        if self.target.ordinal >= count:
            raise TargetError(f"there is no GPU number {self.target.ordinal}; this machine has {count}, counted from 0")
        return found

    @contextmanager
    def current(self) -> Iterator[Any]:
        """For the time of a ``with`` this GPU is CuPy's current one; gives its current stream.

        Raises:
            ArgumentError: the current stream is captured, and cannot do what it is asked for.
            MemoryLimitError: CuPy finds no room for what it is asked for.
            DeviceLostError: the driver reports that the GPU has failed this process.
        """
        cp = self.cupy
        try:
            with cp.cuda.Device(self.target.ordinal):
                yield cp.cuda.get_current_stream()
        except MemoryLimitError:
            raise
        except MemoryError:
            raise MemoryLimitError(f"{self._name} has no memory left for a copy; free some, or make the shapes smaller") from None
        except (cp.cuda.driver.CUDADriverError, cp.cuda.runtime.CUDARuntimeError) as error:
            said = " ".join(str(error).split())
            if any(word in said for word in _CAPTURED):
                raise ArgumentError(
                    f"the current stream of {self._name} is captured, and this cannot be a part of a graph ({said}): call it "
                    "once on that stream before, and in the capture with arrays on the GPU and out="
                ) from None
            if any(word in said for word in _HARMLESS):
                raise TargetError(f"{self._name} refuses to launch the program: {said}") from None
            raise DeviceLostError(
                f"{self._name} fails ({said}): a program of this process, or of another one, has broken its memory or hangs; "
                "start this process again"
            ) from None

    @contextmanager
    def on_stream(self, pointer: int) -> Iterator[None]:
        """For the time of a ``with`` another library's stream is CuPy's current one on this GPU.

        Args:
            pointer: CUDA's handle of it.
        """
        with self.current(), self.cupy.cuda.ExternalStream(pointer, self.target.ordinal):
            yield

    @property
    def _name(self) -> str:
        return f"GPU {self.target.ordinal}"

    # Memory ---------------------------------------------------------------------------------------------------------
    def _block(self, nbytes: int, fill: int | None = None) -> tuple[Any, int]:
        with self.current() as stream:
            pointer = self.room(nbytes)
            if fill is not None:
                self.cupy.cuda.runtime.memsetAsync(pointer.ptr, fill, max(1, nbytes), stream.ptr)
        return pointer, int(pointer.ptr)

    def room(self, nbytes: int) -> Any:
        """Memory of CuPy's pool.

        Raises:
            MemoryLimitError: the GPU has none left.
        """
        try:
            return self.cupy.cuda.alloc(max(1, nbytes))
        except MemoryError:
            raise MemoryLimitError(
                f"{self._name} has no {in_units(nbytes)} of memory left; free some, or make the shapes smaller"
            ) from None

    def copy_in(self, memory: Memory) -> None:
        array = np.ascontiguousarray(memory.array)
        with self.current() as stream:
            # The driver is done with memory that is not pinned when it returns.
            source = array.__array_interface__["data"][0]
            self.cupy.cuda.runtime.memcpyAsync(memory.address, source, array.nbytes, _TO_DEVICE, stream.ptr)

    def _read(self, address: int, array: Array) -> None:
        with self.current() as stream:
            target = array.__array_interface__["data"][0]
            self.cupy.cuda.runtime.memcpyAsync(target, address, array.nbytes, _TO_HOST, stream.ptr)
            stream.synchronize()

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> Any:
        """CuPy's."""
        kind = numpy_type(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        cp = self.cupy
        memory = cp.cuda.UnownedMemory(address, nbytes, None, self.target.ordinal)
        return cp.ndarray(shape, device_type(dtype), cp.cuda.MemoryPointer(memory, 0))

    def scratch(self, nbytes: int) -> DeviceMemory:
        """As :meth:`alloc`, but it holds anything. Given back, it goes to who asks next on the same stream: no launch on it is
        waited for."""
        return DeviceMemory(*self._block(nbytes), 0, (nbytes,), "uint8")

    # Programs -------------------------------------------------------------------------------------------------------
    def load(self, compiled: Compiled) -> LoadedModule:
        """Let the driver load a kernel.

        Raises:
            TargetError: it was compiled for another target; there is no driver, or it refuses the kernel.
        """
        return LoadedModule(own_device_object(compiled, self.target, (Form.CUBIN, Form.PTX)), self)

    def link(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel]) -> CudaSteps:
        return CudaSteps(steps, kernels, self)

    # The clock ------------------------------------------------------------------------------------------------------
    def time(self, run: Callable[[int], None], calls: int) -> float:
        """By two events on the stream."""
        with self.current() as stream:
            start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            start.record(stream)
            run(calls)
            end.record(stream)
            end.synchronize()
            return float(self.cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def finish(self) -> None:
        """Wait for the current stream."""
        with self.current() as stream:
            stream.synchronize()

    def sweeper(self, nbytes: int) -> Callable[[], None]:
        memory = self.alloc(nbytes)

        def sweep() -> None:
            with self.current() as stream:
                self.cupy.cuda.runtime.memsetAsync(memory.address, 1, nbytes, stream.ptr)

        return sweep

    def disturbances(self) -> int:
        """The driver does not tell who else runs on it."""
        return 0

    def peaks(self, threads: int) -> Peaks:
        """What copies move, timed; operations as the data sheet has them."""
        return measured_peaks(self, self._move, threads)

    def _move(self, target: int, source: int, nbytes: int) -> None:
        stream = self.cupy.cuda.get_current_stream()
        self.cupy.cuda.runtime.memcpyAsync(target, source, nbytes, _WITHIN, stream.ptr)


def device_type(dtype: str) -> np.dtype[Any]:
    """Of CuPy's arrays. Those of bfloat16 are of its bits."""
    return np.dtype(np.uint16) if dtype == "bfloat16" else numpy_type(dtype)


class LoadedModule:
    """A kernel's functions on a GPU."""

    def __init__(self, compiled: DeviceObject, device: Cuda) -> None:
        self._device = device
        cp = device.cupy
        driver = cp.cuda.driver
        most = device.target.gpu.block_shared if device.target.gpu else 0
        with device.current():
            try:
                self._module = cp.cuda.function.Module()
                self._module.load(compiled.code)
                made = {launch.symbol: self._module.get_function(launch.symbol) for launch in compiled.at(When.ONCE)}
                made |= {launch.symbol: self._module.get_function(launch.symbol) for launch in compiled.at(When.CALL)}
            except driver.CUDADriverError as error:
                raise TargetError(f"the driver refuses to load the program: {' '.join(str(error).split())}") from None
            for launch in (*compiled.at(When.ONCE), *compiled.at(When.CALL)):
                if launch.shared > most:
                    raise TargetError(f"the program needs {launch.shared} bytes of shared memory in a block; there are {most}")
                if launch.shared > _COMMON_SHARED:
                    attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    driver.funcSetAttribute(made[launch.symbol].ptr, attribute, launch.shared)
        self._once = [(made[launch.symbol], launch) for launch in compiled.at(When.ONCE)]
        self._call = [(made[launch.symbol], launch) for launch in compiled.at(When.CALL)]
        #: The launches that were made many times last: their addresses, how many, and their graph.
        self._graph: tuple[bytes, int, Any] = (b"", 0, None)

    def call(self, packed: bytes) -> None:
        """Make the launches of a call on the current stream."""
        with self._device.current() as stream:
            self._launch(self._call, packed, stream)

    def prepare(self, packed: bytes) -> None:
        """Make those that come before."""
        with self._device.current() as stream:
            self._launch(self._once, packed, stream)

    def repeat(self, packed: bytes, count: int) -> None:
        """Make the launches of so many calls."""
        with self._device.current() as stream:
            if count < _FEW:
                for _ in range(count):
                    self._launch(self._call, packed, stream)
                return
            calls = min(count, _IN_A_GRAPH)
            if self._graph[:2] != (packed, calls):
                self._graph = (packed, calls, self._captured(packed, calls))
            for _ in range(count // calls):
                self._graph[2].launch(stream)
            for _ in range(count % calls):
                self._launch(self._call, packed, stream)

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls | None:
        """There is no shortcut."""
        del fixed, arguments
        return None

    def _captured(self, packed: bytes, calls: int) -> Any:
        own = self._device.cupy.cuda.Stream(non_blocking=True)
        with own:
            own.begin_capture()
            for _ in range(calls):
                self._launch(self._call, packed, own)
            return own.end_capture()

    @staticmethod
    def _launch(launches: Sequence[tuple[Any, DeviceLaunch]], packed: bytes, stream: Any) -> None:
        addresses = struct.unpack(f"{len(packed) // 8}Q", packed)
        for function, launch in launches:
            arguments = tuple(word(addresses[slot.base] + slot.offset) for slot in launch.arguments)
            function((launch.grid, 1, 1), (launch.threads, 1, 1), arguments, launch.shared, stream)


def word(address: int) -> np.uint64:
    """An address as CuPy hands it to a kernel."""
    return np.uint64(address)
