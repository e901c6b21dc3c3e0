"""PyTorch module -> ONNX model, through PyTorch's own exporter."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import onnx
import torch

#: The loggers of the packages that exporting goes through.
_LOGS: Final = ("torch.onnx", "onnxscript", "onnx_ir")


def export(
    module: torch.nn.Module,
    arguments: Sequence[torch.Tensor],
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    optimize: bool = True,
    open_dimensions: Sequence[Sequence[int]] | None = None,
) -> onnx.ModelProto:
    """``module`` called with ``arguments``, as an ONNX model; parameters and buffers are constants of it.

    Args:
        inputs, outputs: what to call these; by default as PyTorch does.
        optimize: whether the exporter may simplify the graph. It makes float32 of bfloat16 weights that it folds batch
            normalisation into, beside data that stay bfloat16.
        open_dimensions: of each argument, of a module that takes any number of them; which are equal PyTorch finds. By default
            all shapes are those of ``arguments``.

    Raises:
        Exception: whatever PyTorch's exporter raises about what it does not take.
    """
    shapes = None
    if open_dimensions is not None:
        shapes = {"given": tuple(dict.fromkeys(each, torch.export.Dim.AUTO) for each in open_dimensions)}
    with _quietly():
        program = torch.onnx.export(
            module,
            tuple(arguments),
            dynamo=True,
            verbose=False,
            optimize=optimize,
            dynamic_shapes=shapes,
            input_names=None if inputs is None else list(inputs),
            output_names=None if outputs is None else list(outputs),
        )
    assert program is not None
    proto: onnx.ModelProto = program.model_proto
    return proto


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's remarks on PyTorch's own insides and on packages that are not installed."""
    logs = [logging.getLogger(name) for name in _LOGS]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
