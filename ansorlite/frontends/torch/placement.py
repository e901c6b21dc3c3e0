"""Where a graph's tensors are, which target that is, and how kernels come to use tensors there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import torch

from ansorlite.errors import ArgumentError, TargetError
from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.graph.executable import Executable
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.runtime.arguments import Array, numpy_type
from ansorlite.runtime.cuda import Cuda
from ansorlite.target import Target, resolve

#: Makes an uninitialised tensor of a shape and dtype.
Make: TypeAlias = Callable[[tuple[int, ...], torch.dtype], Any]

#: The kind of targets for tensors on GPUs.
_CUDA: Final = "cuda"
_BFLOAT16: Final = numpy_type("bfloat16")


@dataclass(frozen=True)
class Placement:
    """
    Attributes:
        device: that all tensors are on.
        target: of the programs that use them there.
    """

    device: torch.device
    target: Target

    @property
    def name(self) -> str:
        """For people."""
        return "the CPU" if self.device.type == "cpu" else str(self.device)


def placement_of(arguments: Sequence[Any], target: str | Target | None) -> Placement:
    """Where a graph with these arguments runs.

    Args:
        target: that its caller asks for; by default the processor, or the GPU that the tensors are on.

    Raises:
        NotCompiledError: the tensors are not all on one device, or on one that no programs are made for.
        ArgumentError: ``target`` is not where the tensors are.
        TargetError: ``target`` is unknown, or not here.
    """
    devices = {argument.device: None for argument in arguments if isinstance(argument, torch.Tensor)}
    if len(devices) > 1:
        raise NotCompiledError(
            f"its tensors are on {' and '.join(map(str, devices))}; move the module and its inputs to one device"
        )
    device = next(iter(devices), torch.device("cpu"))
    if device.type not in ("cpu", _CUDA):
        raise NotCompiledError(f"its tensors are on {device}, and programs are made for CPUs and NVIDIA GPUs")
    number = device.index or 0
    if target is None:
        try:
            return Placement(device, resolve("llvm" if device.type == "cpu" else f"cuda:{number}"))
        except TargetError as error:
            raise NotCompiledError(str(error)) from error
    if device.type == "cpu" and str(target).partition(":")[0] == _CUDA and not torch.cuda.is_available():
        raise ArgumentError(f"target is {target!r}, but this PyTorch has no CUDA; install one that has, or leave target out")
    found = resolve(target)
    if (found.kind == _CUDA) != (device.type == _CUDA):
        raise ArgumentError(f"target is {target!r}, but the tensors are on {device}; move them, or leave target out")
    if found.kind == _CUDA and found.ordinal != number:
        raise ArgumentError(
            f"target is {target!r}, but the tensors are on {device}; ask for 'cuda:{number}', or leave target out"
        )
    return Placement(device, found)


def call_there(executable: Executable, gpu: Cuda, make: Make, stream: Callable[[], int]) -> Callable[[Sequence[Any]], list[Any]]:
    """A call of a model for CUDA on tensors there: PyTorch's memory, on PyTorch's stream, not waited for.

    Args:
        make: makes the results, on the GPU, so that PyTorch's allocator knows them.
        stream: CUDA's handle of PyTorch's current stream there.
    """
    outputs = [(name, value.shape, getattr(torch, value.dtype)) for name, value in executable.outputs.items()]

    def call(tensors: Sequence[Any]) -> list[Any]:
        results = [make(shape, dtype) for _, shape, dtype in outputs]
        given = dict(zip(executable.inputs, map(_bits, tensors), strict=True))
        with gpu.on_stream(stream()):
            executable.run(given, {name: _bits(result) for (name, _, _), result in zip(outputs, results, strict=True)})
        return results

    return call


def call_here(executable: Executable | OpenExecutable) -> Callable[[Sequence[Any]], list[Any]]:
    """A call of a model for the processor on tensors in its memory."""
    return lambda tensors: [_tensor(array) for array in executable(*map(array_of, tensors)).values()]


def array_of(tensor: torch.Tensor) -> Array:
    """The tensor as numpy sees it, in the same memory.

    Raises:
        BufferError, RuntimeError, TypeError, ValueError: numpy has no such arrays.
    """
    array: Array = np.from_dlpack(_bits(tensor))
    return array.view(_BFLOAT16) if tensor.dtype is torch.bfloat16 else array


def _tensor(array: Array) -> torch.Tensor:
    """The inverse of :func:`array_of`."""
    if array.dtype == _BFLOAT16:
        return torch.from_dlpack(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_dlpack(array)


def _bits(tensor: Any) -> Any:
    """bfloat16, which neither CuPy nor DLPack between PyTorch and numpy has, by its bits."""
    return tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor
