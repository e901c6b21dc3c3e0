"""ONNX files → models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorlite.frontends.onnx.importer import import_model
from ansorlite.frontends.onnx.load import Source, load
from ansorlite.frontends.onnx.models import model_of
from ansorlite.graph.hybrid import AnyModel
from ansorlite.target import Target

__all__ = ["Source", "load_model"]


def load_model(source: Source, shapes: Mapping[str, Sequence[int]] | None = None, target: str | Target = "llvm") -> AnyModel:
    """The model in ``source``, cut into tasks for ``target``.

    Operators that are no tensor expression run in Python between native segments; a model that has some is a
    :class:`ansorlite.graph.hybrid.HybridModel`, and its ``fallbacks`` name them.

    Args:
        source: a path, the bytes of a file, or an ``onnx.ModelProto``.
        shapes: input name → shape, for inputs whose shapes the model leaves open.

    Raises:
        ModelError: the model is malformed, has an operator that nothing knows, or a shape is open or wrong.
        TargetError: an unknown target.
    """
    return model_of(import_model(load(source), shapes or {}), target)
