"""A compiled computation on a device with memory of its own, as a Python callable: arrays of any library, not copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ansorlite.codegen.object import Compiled
from ansorlite.errors import ArgumentError
from ansorlite.loops.nodes import Buffer
from ansorlite.runtime.arguments import Array
from ansorlite.runtime.cuda import Cuda, device_type
from ansorlite.runtime.device import Memory
from ansorlite.runtime.device_arrays import DeviceArray, DeviceArrays, apart, contiguous, in_place, overlap
from ansorlite.runtime.kernel import Kernel, Origin
from ansorlite.runtime.timing import Timing, TimingSettings, measure
from ansorlite.runtime.workspace import WorkspacePool
from ansorlite.target import Target


class _Scratch(WorkspacePool):
    """CuPy's pool in the place of our own: that one knows which stream memory is used on."""

    def __init__(self, device: Cuda, nbytes: int) -> None:
        super().__init__(device, nbytes)
        self._device = device

    def take(self) -> Memory:
        return self._device.scratch(self._nbytes)

    def give(self, block: Memory) -> None:
        """It goes when nobody has it any more."""


class DeviceKernel(Kernel):
    """A kernel for an NVIDIA GPU.

    Called with numpy's arrays, it copies them there and its outputs back, and returns numpy's, as any kernel does. Called with
    at least one array that is on the GPU (of CuPy, of PyTorch, of whatever has ``__cuda_array_interface__`` or speaks DLPack), it
    reads those where they are, copies others there, runs on CuPy's current stream, and returns CuPy's arrays without waiting for
    them. ``bind`` takes arrays on the GPU only. Those of bfloat16 are CuPy's arrays of uint16, its bits.
    """

    def __init__(self, compiled: Compiled, params: Sequence[Buffer], target: Target, origin: Origin | None = None) -> None:
        super().__init__(compiled, params, target, origin)
        device = self._device
        assert isinstance(device, Cuda)
        self._cuda = device
        self._arrays = DeviceArrays(device)
        self._workspaces = _Scratch(device, self._workspace_bytes)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run it.

        Args:
            arrays: one per input, of its shape and dtype. One that is not contiguous, or on the host, is copied.
            out: where to write: an array, or one per output; contiguous. New arrays by default.

        Returns:
            The output, or a tuple of them if there are several: numpy's where all that is given is, else CuPy's.

        Raises:
            ArgumentError: a wrong number of arrays, or one of another shape or dtype, or on another GPU.
            MemoryLimitError: there is no room on the GPU.
            DeviceLostError: the GPU fails.
        """
        outputs = [] if out is None else list(out) if isinstance(out, Sequence) else [out]
        if all(isinstance(array, np.ndarray | np.generic) for array in (*arrays, *outputs)):
            return super().__call__(*arrays, out=out)
        if len(arrays) != len(self.inputs):
            names = ", ".join(buffer.name for buffer in self.inputs)
            raise ArgumentError(f"the kernel takes {len(self.inputs)} arrays ({names}), not {len(arrays)}")
        with self._cuda.current():
            if out is None:
                outputs = self._made()
                written = outputs
            else:
                written = self._given_outputs(outputs)
            ready = [contiguous(self._checked_here(position, array)) for position, array in enumerate(arrays)]
            if out is not None:
                ready = apart(ready, written)
            # Where there is nothing temporary nothing is taken: such a call may be part of a graph of the caller's.
            block = self._workspaces.take() if self._workspace_bytes else None
            address = 0 if block is None else block.address
            self._entry(self._pack(*(array.data.ptr for array in (*ready, *written)), address))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def prepare(self, **constants: Any) -> Kernel:
        """As :meth:`Kernel.prepare`; constants on the GPU are taken from there."""
        ready = {name: self._on_host(name, array) for name, array in constants.items()}
        result = object.__new__(DeviceKernel)
        result.__dict__.update(super().prepare(**ready).__dict__)
        result._workspaces = _Scratch(self._cuda, result._workspace_bytes)
        self._cuda.finish()  # whatever stream the calls are on
        return result

    def bind(self, *arrays: Any) -> Callable[[], None]:
        """A call on these arrays on the GPU, inputs then outputs, that checks nothing any more.

        Raises:
            ArgumentError: a wrong number of arrays, or one of another shape or dtype, or not contiguous, or not on the GPU.
        """
        run = self._bound_on_device(arrays)
        return lambda: run(1)

    def benchmark(self, *arrays: Any, settings: TimingSettings | None = None) -> Timing:
        """Time it on these inputs by the GPU's clock: seconds per call, many launches in a row, so that what they read is in the
        caches where it fits; with cold caches where the settings have ``flush_bytes``.

        Raises:
            ArgumentError: as for a call.
        """
        if settings is not None and not isinstance(settings, TimingSettings):
            raise ArgumentError(f"settings is {settings!r}; it must be ansorlite.runtime.timing.TimingSettings(...), or left out")
        if len(arrays) != len(self.inputs):
            self(*arrays)
        with self._cuda.current():
            ready = [contiguous(self._checked_here(position, array)) for position, array in enumerate(arrays)]
            run = self._bound_on_device([*ready, *self._made()])
        return measure(lambda calls: self._cuda.time(run, calls), settings, self._cuda.sweeper)

    def _bound_on_device(self, arrays: Sequence[DeviceArray]) -> Callable[[int], None]:
        params = self._params
        if len(arrays) != len(params):
            raise ArgumentError(f"the kernel takes {len(params)} arrays, inputs then outputs, not {len(arrays)}")
        with self._cuda.current():
            ready = []
            for position, array in enumerate(arrays):
                if isinstance(array, np.ndarray):
                    raise ArgumentError(f"{params[position].name} is numpy's array; bind takes arrays on the GPU: cupy.asarray")
                view = self._checked_here(position, array)
                if not in_place(view):
                    raise ArgumentError(
                        f"{params[position].name} is not a contiguous array that can be used in place; copy it first"
                    )
                ready.append(view)
            block = self._cuda.alloc(max(1, self._workspace_bytes))
            packed = self._pack(*(view.data.ptr for view in ready), block.address)
            self._prepare(packed)
            self._cuda.finish()  # whatever stream the calls are on
        loaded, kept = self._loaded, (block, self._owners, *ready)

        def run(count: int, _alive: tuple[object, ...] = kept) -> None:
            loaded.repeat(packed, count)

        return run

    def _made(self) -> list[DeviceArray]:
        """New arrays for the outputs."""
        return [self._arrays.made(buffer.shape, buffer.dtype) for buffer in self.outputs]

    def _given_outputs(self, outputs: Sequence[Any]) -> list[DeviceArray]:
        if len(outputs) != len(self.outputs):
            raise ArgumentError(f"out has {len(outputs)} arrays, but the kernel has {len(self.outputs)} outputs")
        ready: list[DeviceArray] = []
        for number, output in enumerate(outputs):
            name = self.outputs[number].name
            if isinstance(output, np.ndarray):
                raise ArgumentError(f"out for {name} is numpy's array, and an input is on the GPU; pass one from cupy.empty")
            view = self._checked_here(len(self.inputs) + number, output)
            if not in_place(view):
                raise ArgumentError(f"out for {name} must be contiguous, and begin at 16 bytes; pass one from cupy.empty")
            if any(overlap(view, other) for other in ready):
                raise ArgumentError(f"out for {name} overlaps another output; pass separate arrays")
            ready.append(view)
        return ready

    def _checked_here(self, position: int, array: Any) -> DeviceArray:
        """CuPy's view of ``array`` if it fits parameter ``position``; one on the host is copied."""
        buffer, (shape, _) = self._params[position], self._checks[position]
        view = self._arrays.here(buffer.name, array)
        if view.shape != shape:
            raise ArgumentError(
                f"{buffer.name} has shape {view.shape}, but the kernel was compiled for {shape}; "
                "reshape it, or compile a task of the other shape"
            )
        if view.dtype != device_type(buffer.dtype):
            raise ArgumentError(f"{buffer.name} is {view.dtype}, not {buffer.dtype}; convert it with .astype({buffer.dtype!r})")
        return view

    def _on_host(self, name: str, array: Any) -> Array:
        known = name in {buffer.name for buffer in self.inputs}
        return self._arrays.on_host(name, array) if known else array  # what is unknown is refused by its name
