"""From a graph of Dynamo's with its arguments to a function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import onnx
import torch

import ansorlite
from ansorlite.api.database import opened
from ansorlite.errors import AnsorliteError
from ansorlite.frontends.onnx import load_model
from ansorlite.frontends.torch.agreement import check_agreement, check_shapes, most_apart
from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.exported import exported
from ansorlite.frontends.torch.placement import Placement, call_here, call_there, placement_of
from ansorlite.frontends.torch.rehearsal import rehearse
from ansorlite.frontends.torch.returned import Returned
from ansorlite.frontends.torch.settings import Settings
from ansorlite.graph.executable import Executable
from ansorlite.graph.hybrid import HybridModel
from ansorlite.graph.model import Model
from ansorlite.runtime.cuda import Cuda
from ansorlite.runtime.devices import device_of

#: Takes the graph's arguments, and returns its results.
Call: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]


def compile_graph(graph: torch.fx.GraphModule, arguments: Sequence[Any], constant: Sequence[bool], settings: Settings) -> Call:
    """A function for all arguments that differ from ``arguments`` in nothing but the values of tensors.

    Args:
        constant: for each argument, whether its value does not change either.

    Raises:
        NotCompiledError: the graph has to be left to PyTorch; what is compiled was compared with it for these arguments.
        RecordsError: the database cannot be used.
        ArgumentError: there is no such space, or the target is not where the tensors are.
        TargetError: there is no such target.
        TuningError: tuning cannot go on.
    """
    placement = placement_of(arguments, settings.target)
    check_gradients(arguments)
    free = [n for n, argument in enumerate(arguments) if isinstance(argument, torch.Tensor) and not constant[n]]
    with torch.inference_mode(False), torch.no_grad():
        results = rehearse(graph, arguments, placement)
        if not results.computed:
            return lambda arguments: graph(*arguments)
        executable = _executable(exported(graph, arguments, free, results.computed), placement, settings)
    due = [results.values[position] for position in results.computed]
    returned, on_tensors = Returned(graph, results), _call_of(executable, placement)

    def run(arguments: Sequence[Any]) -> list[Any]:
        return on_tensors([arguments[position].detach() for position in free])

    with torch.inference_mode(False), torch.no_grad():
        found = run(arguments)
        check_shapes(found, due)
        check_agreement(found, due, most_apart(graph, settings.precision))
    return lambda arguments: returned(arguments, run(arguments))


def check_gradients(arguments: Sequence[Any]) -> None:
    """
    Raises:
        NotCompiledError: results may be asked for gradients.
    """
    tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise NotCompiledError("it may be asked for gradients; call the module under torch.no_grad() or torch.inference_mode()")


def _call_of(executable: Executable, placement: Placement) -> Callable[[Sequence[Any]], list[Any]]:
    """Takes tensors, and returns such."""
    device = placement.device
    gpu = device_of(placement.target)
    if isinstance(gpu, Cuda):
        return call_there(
            executable,
            gpu,
            lambda shape, dtype: torch.empty(shape, dtype=dtype, device=device),
            lambda: int(torch.cuda.current_stream(device).cuda_stream),
        )
    return call_here(executable)


def _executable(proto: onnx.ModelProto, placement: Placement, settings: Settings) -> Executable:
    try:
        model = load_model(proto, target=placement.target, precision=settings.precision)
    except AnsorliteError as error:
        raise NotCompiledError(str(error)) from error
    if isinstance(model, HybridModel):
        raise NotCompiledError(why_not(model))
    if not isinstance(model, Model):
        raise NotCompiledError("the shapes of its results depend on values")
    if settings.trials is None:
        return ansorlite.compile(model, settings.database, space=settings.space)
    with opened(settings.database) as database:
        ansorlite.tune(model, trials=settings.trials, database=database, space=settings.space)
        return ansorlite.compile(model, database, space=settings.space)


def why_not(model: HybridModel) -> str:
    """Why a graph is left to PyTorch, as part of it would run in Python."""
    if not model.fallbacks:
        return "a tensor that it takes or returns has no elements"
    fallback = model.fallbacks[0]
    return f"{fallback.title} would run in Python: {fallback.reason}"
