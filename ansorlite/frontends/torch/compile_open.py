"""From a graph whose shapes Dynamo left open to a function for all of them: it is exported once, with open dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import torch

import ansorlite
from ansorlite.errors import AnsorliteError
from ansorlite.frontends.onnx import load_any
from ansorlite.frontends.torch.agreement import check_agreement, check_shapes, most_apart
from ansorlite.frontends.torch.compile import Call, check_gradients, why_not
from ansorlite.frontends.torch.errors import NotCompiledError
from ansorlite.frontends.torch.exported import Sizes, exported
from ansorlite.frontends.torch.placement import Placement, call_here, placement_of
from ansorlite.frontends.torch.rehearsal import rehearse
from ansorlite.frontends.torch.returned import Returned
from ansorlite.frontends.torch.settings import Settings
from ansorlite.graph.hybrid import HybridModel
from ansorlite.graph.open_executable import OpenExecutable
from ansorlite.graph.open_model import OpenModel


@dataclass(frozen=True)
class OpenShapes:
    """What Dynamo left open of a graph.

    Attributes:
        sizes: the arguments that are sizes.
        dimensions: the open ones of each tensor that is no constant.
    """

    sizes: Sizes
    dimensions: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(graph: torch.fx.GraphModule, constant: Sequence[bool]) -> OpenShapes | None:
        """``None`` if shapes are fixed, or a size is that of no dimension."""
        examples = [node.meta.get("example_value") for node in graph.graph.find_nodes(op="placeholder")]
        given = [each for each, fixed in zip(examples, constant, strict=True) if isinstance(each, torch.Tensor) and not fixed]
        places: dict[str, tuple[int, int]] = {}
        for number, tensor in enumerate(given):
            for dimension in _open(tensor):
                places.setdefault(_symbol(tensor.shape[dimension]), (number, dimension))
        symbols = {position: _symbol(each) for position, each in enumerate(examples) if isinstance(each, torch.SymInt)}
        if not places or not all(symbol in places for symbol in symbols.values()):
            return None
        sizes = {position: places[symbol] for position, symbol in symbols.items()}
        return OpenShapes(sizes, tuple(map(_open, given)))


def compile_open_graph(
    graph: torch.fx.GraphModule, arguments: Sequence[Any], constant: Sequence[bool], shapes: OpenShapes, settings: Settings
) -> Call:
    """A function for all arguments that differ from ``arguments`` in nothing but open sizes and the values of tensors.

    It raises :class:`NotCompiledError` where PyTorch, which is asked once for each set of shapes, has other results.

    Args:
        constant: for each argument, whether its value does not change either.

    Raises:
        NotCompiledError: the graph has to be compiled for each shape, or left to PyTorch.
        RecordsError: the database cannot be used.
        ArgumentError: there is no such space, or the target is not where the tensors are.
        TargetError: there is no such target.
    """
    placement = placement_of(arguments, settings.target)
    if placement.device.type != "cpu" or settings.trials is not None:
        raise NotCompiledError("programs of open shapes are neither made for GPUs nor tuned")
    check_gradients(arguments)
    free = [n for n, argument in enumerate(arguments) if isinstance(argument, torch.Tensor) and not constant[n]]
    with torch.inference_mode(False), torch.no_grad():
        results = rehearse(graph, arguments, placement)
        if results.views or not results.computed or any(isinstance(value, int) for value in results.values):
            raise NotCompiledError("it returns views or sizes, which follow from its shapes")
        proto = exported(graph, arguments, free, results.computed, shapes.sizes, shapes.dimensions)
        executable = _executable(proto, [arguments[n] for n in free], placement, settings)
    computed, returned = results.computed, Returned(graph, results)
    most = most_apart(graph, settings.precision)
    on_tensors = call_here(executable)
    seen: set[tuple[torch.Size, ...]] = set()

    def call(arguments: Sequence[Any]) -> Sequence[Any]:
        given = [arguments[position].detach() for position in free]
        try:
            found = on_tensors(given)
        except AnsorliteError as error:
            raise NotCompiledError(str(error)) from error
        sizes = tuple(tensor.shape for tensor in given)
        if sizes not in seen:
            with torch.inference_mode(False), torch.no_grad():
                theirs = graph(*arguments)
            due = [theirs[position] for position in computed]
            check_shapes(found, due)
            check_agreement(found, due, most)
            seen.add(sizes)
        return returned(arguments, found)

    return call


def _executable(
    proto: onnx.ModelProto, given: Sequence[torch.Tensor], placement: Placement, settings: Settings
) -> OpenExecutable:
    try:
        model = load_any(proto, target=placement.target, precision=settings.precision)
        if not isinstance(model, OpenModel):
            raise NotCompiledError("PyTorch's exporter leaves none of its shapes open")
        shapes = {name: tuple(tensor.shape) for name, tensor in zip(model.inputs, given, strict=True)}
        made = model.specialize(shapes, {})
    except AnsorliteError as error:
        raise NotCompiledError(str(error)) from error
    if isinstance(made, HybridModel):
        raise NotCompiledError(why_not(made))
    return ansorlite.compile(model, settings.database, space=settings.space)


def _symbol(size: Any) -> str:
    """What Dynamo calls it; sizes that are surely equal have one name."""
    return str(size.node.expr)


def _open(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(dimension for dimension, size in enumerate(tensor.shape) if isinstance(size, torch.SymInt))
