"""A device of OpenCL, through pyopencl.

OpenCL has no addresses that the host knows, but objects of memory. Here each object has a range of numbers that no other one has:
what a launch is given as an address is found among them, and the kernel gets the object, and where in it the array begins.
"""

from __future__ import annotations

import bisect
import struct
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import numpy as np

from ansorlite.codegen.entry import EntryStep
from ansorlite.codegen.object import Compiled, DeviceLaunch, DeviceObject, Form
from ansorlite.errors import DeviceLostError, MemoryLimitError, TargetError
from ansorlite.loops.kernel_module import When
from ansorlite.machine import opencl
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.builtin import Argument, DirectCalls
from ansorlite.runtime.device import LoadedKernel, Memory
from ansorlite.runtime.device_memory import DeviceSpace
from ansorlite.runtime.device_peaks import measured_peaks
from ansorlite.runtime.device_steps import run_step
from ansorlite.runtime.memory import in_units
from ansorlite.runtime.own import own_device_object
from ansorlite.runtime.timing import wall_clock
from ansorlite.target import Target

if TYPE_CHECKING:
    from ansorlite.runtime.peaks import Peaks

#: Objects of memory begin at numbers that this divides.
_STEP: Final = 1 << 12


class _Object:
    """An object of memory, with its number."""

    def __init__(self, begin: int, nbytes: int, buffer: Any) -> None:
        self.begin, self.nbytes, self.buffer = begin, nbytes, buffer


class OpenCl(DeviceSpace):
    """A :class:`~ansorlite.runtime.device.Device`: the device of this machine that ``target`` names. Calls are asked for in
    order, and only what hands numbers to the host waits."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.lock = threading.RLock()
        self._objects: WeakValueDictionary[int, _Object] = WeakValueDictionary()
        self._begins: list[int] = []
        self._end = _STEP

    @cached_property
    def cl(self) -> Any:
        """pyopencl."""
        return opencl.pyopencl()

    @cached_property
    def _device(self) -> Any:
        return opencl.device(self.target.ordinal)

    @cached_property
    def context(self) -> Any:
        """OpenCL's, of this device."""
        return self.cl.Context([self._device])

    @cached_property
    def queue(self) -> Any:
        """The one queue: things happen in the order in which they are asked for."""
        return self.cl.CommandQueue(self.context, self._device)

    @contextmanager
    def told(self) -> Iterator[None]:
        """What the driver reports becomes one sentence.

        Raises:
            MemoryLimitError: the device has no room.
            DeviceLostError: another failure.
        """
        try:
            yield
        except self.cl.MemoryError as error:
            raise MemoryLimitError(
                f"the OpenCL device has no memory left ({error}); free some, or make the shapes smaller"
            ) from None
        except self.cl.Error as error:
            raise DeviceLostError(f"the OpenCL device fails ({error}); start this process again") from None

    # Memory ---------------------------------------------------------------------------------------------------------
    def _block(self, nbytes: int, fill: int | None = None) -> tuple[_Object, int]:
        size = max(1, nbytes)
        if size > self._device.max_mem_alloc_size:
            limit = in_units(int(self._device.max_mem_alloc_size))
            raise MemoryLimitError(f"the OpenCL device gives at most {limit} of memory at once, not {in_units(size)}")
        with self.lock, self.told():
            made = _Object(self._end, size, self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, size))
            self._end += -(-size // _STEP) * _STEP + _STEP
            self._objects[made.begin] = made
            # Numbers only grow, so the list stays sorted.
            self._begins = [*(begin for begin in self._begins if begin in self._objects), made.begin]
        if fill is not None:
            self._fill(made, fill)
        return made, made.begin

    def _fill(self, owner: _Object, value: int) -> None:
        with self.told():
            self.cl.enqueue_fill_buffer(self.queue, owner.buffer, np.uint8(value), 0, owner.nbytes)

    def find(self, address: int) -> tuple[Any, int]:
        """The object that an address is in, and how many bytes from its beginning."""
        with self.lock:
            position = bisect.bisect(self._begins, address) - 1
            found = self._objects.get(self._begins[position]) if position >= 0 else None
        if found is None or address >= found.begin + found.nbytes:
            raise DeviceLostError(f"a launch was given the address {address:#x}, where no memory is")
        return found.buffer, address - found.begin

    def copy_in(self, memory: Memory) -> None:
        array = np.ascontiguousarray(memory.array)
        if array.nbytes:
            self.copy(memory.address, array.reshape(-1).view(np.uint8))

    def _read(self, address: int, array: Array) -> None:
        if array.nbytes:
            buffer, offset = self.find(address)
            flat = array.reshape(-1).view(np.uint8)
            with self.told():
                self.cl.enqueue_copy(self.queue, flat, buffer, src_offset=offset)

    def copy(self, address: int, content: Array) -> None:
        """Bytes of the host's to an address."""
        buffer, offset = self.find(address)
        with self.told():
            self.cl.enqueue_copy(self.queue, buffer, content, dst_offset=offset)

    def move(self, target: int, source: int, nbytes: int) -> None:
        """Bytes from one address to another."""
        (to, at), (of, begin) = self.find(target), self.find(source)
        with self.told():
            self.cl.enqueue_copy(self.queue, to, of, byte_count=nbytes, src_offset=begin, dst_offset=at)

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> Array:
        """There is no memory that both sides see.

        Raises:
            TargetError: always.
        """
        del address, shape, dtype
        raise TargetError("parts of a model that run in Python do not run on an OpenCL device; compile it for target='llvm'")

    # Programs -------------------------------------------------------------------------------------------------------
    def load(self, compiled: Compiled) -> LoadedProgram:
        """Let the driver compile a kernel.

        Raises:
            TargetError: it was printed for another target, or the driver refuses it.
        """
        return LoadedProgram(own_device_object(compiled, self.target, (Form.OPENCL,)), self)

    def link(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel]) -> ClSteps:
        return ClSteps(steps, kernels, self)

    @property
    def options(self) -> list[str]:
        """Of the driver's compiler: quotients and roots are rounded rightly where the device can."""
        rounds = self._device.single_fp_config & self.cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return ["-cl-fp32-correctly-rounded-divide-sqrt"] if rounds else []

    # The clock ------------------------------------------------------------------------------------------------------
    def time(self, run: Callable[[int], None], calls: int) -> float:
        """By the wall's clock, from when nothing is left to do to when nothing is left again."""

        def finished(count: int) -> None:
            run(count)
            self.finish()

        self.finish()
        return wall_clock(finished, calls)

    def finish(self) -> None:
        """Wait until all is done that was asked for."""
        with self.told():
            self.queue.finish()

    def sweeper(self, nbytes: int) -> Callable[[], None]:
        memory = self.alloc(nbytes)
        return lambda: self._fill(memory.owner, 1)

    def disturbances(self) -> int:
        """The driver does not tell who else runs on it."""
        return 0

    def peaks(self, threads: int) -> Peaks:
        """What copies move, timed; operations as the device tells of itself."""
        return measured_peaks(self, self.move, threads)


class LoadedProgram:
    """A kernel's functions on a device of OpenCL."""

    def __init__(self, compiled: DeviceObject, device: OpenCl) -> None:
        self._device = device
        cl = device.cl
        try:
            with warnings.catch_warnings():
                # What compilers remark on is for whoever reads the program: a refusal is an error.
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program = cl.Program(device.context, compiled.text).build(options=device.options)
            self._once, self._call = (
                [(cl.Kernel(program, launch.symbol), launch) for launch in compiled.at(when)] for when in (When.ONCE, When.CALL)
            )
        except cl.Error as error:
            reason = " ".join(str(error).split())[:500]
            raise TargetError(f"the driver of the OpenCL device refuses the program: {reason}") from None

    def call(self, packed: bytes) -> None:
        """Ask for the launches of a call."""
        self._launch(self._call, packed)

    def repeat(self, packed: bytes, count: int) -> None:
        """Ask for those of so many calls."""
        for _ in range(count):
            self._launch(self._call, packed)

    def prepare(self, packed: bytes) -> None:
        """Ask for those that come before."""
        self._launch(self._once, packed)

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls | None:
        """There is no shortcut."""
        del fixed, arguments
        return None

    def _launch(self, launches: Sequence[tuple[Any, DeviceLaunch]], packed: bytes) -> None:
        addresses = struct.unpack(f"{len(packed) // 8}Q", packed)
        device = self._device
        # A kernel's arguments are its own state: two threads must not set them at once.
        with device.lock, device.told():
            for kernel, launch in launches:
                for number, slot in enumerate(launch.arguments):
                    buffer, offset = device.find(addresses[slot.base] + slot.offset)
                    kernel.set_arg(2 * number, buffer)
                    kernel.set_arg(2 * number + 1, np.uint64(offset))
                sizes = (launch.grid * launch.threads,), (launch.threads,)
                device.cl.enqueue_nd_range_kernel(device.queue, kernel, *sizes)


class ClSteps:
    """The steps of a model, asked for one after another."""

    def __init__(self, steps: Sequence[EntryStep], kernels: Mapping[str, LoadedKernel], device: OpenCl) -> None:
        self._steps = tuple(steps)
        self._kernels = dict(kernels)
        self._device = device

    def run(self, bases: bytes) -> None:
        """
        Args:
            bases: the packed addresses of the blocks.
        """
        for step in self._steps:
            self._step(step, bases)

    def profile(self, bases: bytes) -> list[int]:
        """Run them, each waited for; the nanoseconds of each."""
        return [round(1e9 * self._device.time(lambda _, s=step: self._step(s, bases), 1)) for step in self._steps]  # type: ignore[misc]

    def direct(self, fixed: Sequence[int], arguments: Sequence[Argument]) -> DirectCalls | None:
        """There is no shortcut."""
        del fixed, arguments
        return None

    def _step(self, step: EntryStep, bases: bytes) -> None:
        run_step(step, bases, self._kernels, self._device.move)
