"""Models written in PyTorch, with random weights, exported to ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import torch
from torch import nn

from ansorlite.frontends.torch.export import export
from benchmarks.models.example import Array, Example, Source

#: Makes one input.
Draw: TypeAlias = Callable[[np.random.Generator], Array]


def normal(*shape: int) -> Draw:
    """Of mean 0 and deviation 1, float32."""
    return lambda rng: rng.standard_normal(shape, np.float32)


def integers(end: int, *shape: int) -> Draw:
    """From 0 to below ``end``, int64."""
    return lambda rng: rng.integers(end, size=shape)


def ones(*shape: int) -> Draw:
    """int64; nothing random."""
    return lambda _: np.ones(shape, np.int64)


def exported(make: Callable[[], nn.Module], inputs: Mapping[str, Draw]) -> Source:
    """The module that ``make`` returns, which takes ``inputs`` in this order."""

    def source(rng: np.random.Generator) -> Example:
        module, arrays = drawn(make, inputs, rng)
        tensors = [torch.from_numpy(array) for array in arrays.values()]
        proto = export(module, tensors, inputs=list(arrays))

        def eager() -> list[Array]:
            with torch.inference_mode():
                result = module(*tensors)
            return [_array(tensor) for tensor in (result if isinstance(result, tuple) else (result,))]

        return Example(proto.SerializeToString(), arrays, eager)

    return source


def _array(tensor: torch.Tensor) -> Array:
    """numpy has no bfloat16, which autocast may end with."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def drawn(
    make: Callable[[], nn.Module], inputs: Mapping[str, Draw], rng: np.random.Generator
) -> tuple[nn.Module, Mapping[str, Array]]:
    """The module with random weights, for inference, and what it takes."""
    module = make().eval()
    _randomize(module, rng)
    return module, {name: draw(rng) for name, draw in inputs.items()}


def _randomize(module: nn.Module, rng: np.random.Generator) -> None:
    """Weights that keep values about as large as they are; statistics of batch normalisation that are not trivial."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(_weights(name, tuple(parameter.shape), rng)))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.from_numpy(0.1 * rng.standard_normal(buffer.shape, np.float32)))
            elif name.endswith("running_var"):
                buffer.copy_(torch.from_numpy(rng.uniform(0.5, 1.5, buffer.shape).astype(np.float32)))


def _weights(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    drawn = rng.standard_normal(shape, np.float32)
    if len(shape) > 1:
        return np.float32(1 / math.sqrt(math.prod(shape[1:]))) * drawn
    return np.float32(0.1) * drawn + np.float32(name.endswith("weight"))
