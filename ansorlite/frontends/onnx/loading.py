"""From an ONNX file to a model that is cut into tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorlite.frontends.onnx.file import File, Source
from ansorlite.frontends.onnx.importer import import_model
from ansorlite.frontends.onnx.load import load
from ansorlite.frontends.onnx.models import model_of
from ansorlite.frontends.onnx.open import open_model
from ansorlite.graph.dimensions import Dim, Sizes, ValuesNeededError
from ansorlite.graph.hybrid import AnyModel
from ansorlite.graph.open_model import OpenModel
from ansorlite.target import Target


def load_model(
    source: Source,
    shapes: Mapping[str, Sequence[int]] | None = None,
    target: str | Target = "llvm",
    *,
    precision: str = "float32",
) -> AnyModel:
    """The model in ``source``, cut into tasks for ``target``. All its shapes must be known.

    Operators that are no tensor expression run in Python between native segments, and so do those whose shapes depend on
    values of inputs; a model that has some is a :class:`ansorlite.graph.hybrid.HybridModel`, and its ``fallbacks`` name them.

    Args:
        source: a path, the bytes of a file, or an ``onnx.ModelProto``.
        shapes: input name → shape, for inputs whose shapes the model leaves open.
        precision: see :meth:`ansorlite.graph.model.Model.of`.

    Raises:
        ModelError: the model is malformed, has an operator that nothing knows, or a shape is open or wrong.
        TargetError: an unknown target.
    """
    return model_of(import_model(load(source), shapes or {}), target, precision=precision)


def load_any(
    source: Source | File,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, Sizes] | None = None,
    target: str | Target = "llvm",
    *,
    blocked: bool = True,
    precision: str = "float32",
) -> AnyModel | OpenModel:
    """The model in ``source``: an open one if a dimension is open, or if shapes depend on the values of inputs.

    Args:
        shapes: input name → for each dimension its extent, or a name that leaves it open.
        dims: open dimension → its size, or the sizes that programs are made for.
        blocked, precision: see :meth:`ansorlite.graph.model.Model.of`.

    Raises:
        ModelError: the model is malformed, a shape is wrong, or (at once, if nothing is open) nothing knows an operator.
        ArgumentError: ``dims`` names no open dimension, or gives sizes that are not positive integers.
        TargetError: an unknown target.
    """
    model = open_model(load(source), target, shapes, dims, blocked=blocked, precision=precision)
    if model.dims or any(value.shape is None and value.dtype is not None for value in model.inputs.values()):
        return model
    try:
        return model.built(model.specialize(model.shapes({}), {}))
    except ValuesNeededError:
        return model
