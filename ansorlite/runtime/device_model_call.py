"""Calling a whole model on an NVIDIA GPU with arrays that are there: none is copied, and nothing is waited for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from ansorlite.errors import ArgumentError
from ansorlite.runtime.arguments import ArrayType, Signature, by_name
from ansorlite.runtime.builtin import DirectCalls
from ansorlite.runtime.cuda import Cuda, device_type
from ansorlite.runtime.device import Device, Memory
from ansorlite.runtime.device_arrays import DeviceArray, DeviceArrays, apart, contiguous, in_place, on_gpu, overlap
from ansorlite.runtime.model_call import ModelCall, Run
from ansorlite.runtime.workspace import workspace

#: Streams whose temporaries are kept, those used last.
_STREAMS: Final = 8


def model_call(device: Device, signature: Signature, temporaries: int, weights: int, *more_weights: int) -> ModelCall:
    """What calls a model on ``device``: see :class:`ModelCall`."""
    if isinstance(device, Cuda):
        return DeviceModelCall(device, signature, temporaries, weights, *more_weights)
    return ModelCall(device, signature, temporaries, weights, *more_weights)


class _StreamBlocks:
    """Blocks for temporaries. Who has asked for everything on a stream gives its block back at once: who takes it next on the
    same stream comes after. And the addresses stay, which graphs are made for."""

    def __init__(self, device: Cuda, nbytes: int) -> None:
        self._device = device
        self._nbytes = nbytes
        self._idle: OrderedDict[int, list[Memory]] = OrderedDict()

    def take(self, stream: int) -> Memory:
        """A block that no other thread has until it is given back to the same stream."""
        try:
            return self._idle[stream].pop()  # atomic, as is append
        except (KeyError, IndexError):
            return workspace(self._device, self._nbytes)

    def give(self, stream: int, block: Memory) -> None:
        self._idle.setdefault(stream, []).append(block)
        if len(self._idle) > _STREAMS:
            self._idle.popitem(last=False)


class DeviceModelCall(ModelCall):
    """A model's calls on a GPU.

    With arrays on the host it does what :class:`ModelCall` does. As soon as one is on the GPU, arrays there are read and written
    where they are, others are copied there, the model runs on CuPy's current stream, and new outputs are CuPy's arrays.
    """

    def __init__(self, device: Cuda, signature: Signature, temporaries: int, weights: int, *more_weights: int) -> None:
        super().__init__(device, signature, temporaries, weights, *more_weights)
        self._cuda = device
        self._arrays = DeviceArrays(device)
        self._on_streams = _StreamBlocks(device, temporaries)

    def __call__(
        self,
        run: Run,
        arrays: tuple[Any, ...],
        named: Mapping[str, Any],
        out: Mapping[str, Any] | None,
        direct: DirectCalls | None = None,
    ) -> dict[str, Any]:
        """As :meth:`ModelCall.__call__`.

        Raises:
            ArgumentError: as there, or an array on another GPU, or ``out`` on the host while others are on the GPU.
            MemoryLimitError: there is no room on the GPU.
            DeviceLostError: the GPU fails.
        """
        found = by_name(self.signature.inputs, arrays, named)
        if not any(map(on_gpu, (*found.values(), *(out or {}).values()))):
            return super().__call__(run, (found,), {}, out, direct)
        with self._cuda.current() as stream:
            results = self._results(out or {})
            inputs = [
                contiguous(self._checked(f"input {name!r}", found[name], kind)) for name, kind in self.signature.inputs.items()
            ]
            if out:
                inputs = apart(inputs, list(results.values()))
            block = self._on_streams.take(stream.ptr)
            addresses = (array.data.ptr for array in (*inputs, *results.values()))
            run([block.address, self._weights, *addresses, *self._more_weights])
            self._on_streams.give(stream.ptr, block)
        # The caller's own objects, whatever library they are of.
        return {**results, **(out or {})}

    def _results(self, out: Mapping[str, Any]) -> dict[str, DeviceArray]:
        """Views of the arrays of ``out``, and new ones for the rest, in order."""
        outputs = self.signature.outputs
        if unknown := [name for name in out if name not in outputs]:
            raise ArgumentError(f"output {unknown[0]!r} is unknown; the model's outputs are: {', '.join(outputs)}")
        ready: dict[str, DeviceArray] = {}
        for name, kind in outputs.items():
            ready[name] = self._writable(name, out[name], kind) if name in out else self._arrays.made(kind.shape, kind.dtype)
            if name in out and any(overlap(ready[name], other) for known, other in ready.items() if known != name):
                raise ArgumentError(f"out for {name!r} overlaps another output; pass separate arrays")
        return ready

    def _writable(self, name: str, array: Any, kind: ArrayType) -> DeviceArray:
        if not on_gpu(array):
            raise ArgumentError(f"out for {name!r} is on the host, and another array on the GPU; pass one from cupy.empty")
        view = self._checked(f"out for {name!r}", array, kind)
        if not in_place(view):
            raise ArgumentError(f"out for {name!r} must be contiguous, and begin at 16 bytes; pass one from cupy.empty")
        return view

    def _checked(self, what: str, array: Any, kind: ArrayType) -> DeviceArray:
        view = self._arrays.here(what, array)
        if view.shape != tuple(kind.shape):
            raise ArgumentError(f"{what} has shape {view.shape}, but the model takes {kind.shape}")
        if view.dtype != device_type(kind.dtype):
            told = "uint16, the bits of bfloat16" if kind.dtype == "bfloat16" else kind.dtype
            raise ArgumentError(f"{what} is {view.dtype}, not {told}; convert it with .astype({device_type(kind.dtype).name!r})")
        return view
