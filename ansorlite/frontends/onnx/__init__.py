"""ONNX files → models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorlite.frontends.onnx.importer import import_graph
from ansorlite.frontends.onnx.load import Source, load
from ansorlite.graph.model import Model
from ansorlite.target import Target

__all__ = ["Source", "load_model"]


def load_model(source: Source, shapes: Mapping[str, Sequence[int]] | None = None, target: str | Target = "llvm") -> Model:
    """The model in ``source``, cut into tasks for ``target``.

    Args:
        source: a path, the bytes of a file, or an ``onnx.ModelProto``.
        shapes: input name → shape, for inputs whose shapes the model leaves open.

    Raises:
        ModelError: the model is malformed, has an operator that is not supported, or a shape is open or wrong.
        TargetError: an unknown target.
    """
    return Model.of(import_graph(load(source), shapes or {}), target)
