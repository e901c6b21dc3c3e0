"""From a file, bytes or a protobuf to a checked ONNX model. Whatever is wrong with it becomes one clear sentence."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from ansorlite.errors import ArgumentError, ModelError
from ansorlite.frontends.onnx.external import is_external, load_external
from ansorlite.frontends.onnx.file import File, Source
from ansorlite.frontends.onnx.functions import check_functions, inlined
from ansorlite.frontends.onnx.outline import outline
from ansorlite.frontends.onnx.tensors import check_tensor, tensors
from ansorlite.frontends.onnx.text import check_text


def load(source: Source | File) -> onnx.ModelProto:
    """The model in ``source``, checked, with its external data in it and its own functions expanded.

    Raises:
        ArgumentError: it is none of these.
        ModelError: the file is not there, is not ONNX, is cut off, breaks ONNX's rules, or has data outside of its folder.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "the model", None)
    if not isinstance(source, File | bytes | str | os.PathLike):
        raise ArgumentError(f"a model is given as a path, bytes or an onnx.ModelProto, not as {type(source).__name__}")
    file = source if isinstance(source, File) else File.of(source)
    return _checked(_parsed(file.data, file.name), file.name, file.path)


def _parsed(data: bytes, what: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise ModelError(f"{what} is not an ONNX model, or is cut off: its {len(data)} bytes are no valid protobuf") from None
    return model


def _checked(model: onnx.ModelProto, what: str, path: Path | None) -> onnx.ModelProto:
    if not model.HasField("graph"):
        raise ModelError(f"{what} is not an ONNX model: it has no graph")
    check_text(model, what)
    for tensor in tensors(model):
        if is_external(tensor):
            load_external(tensor, what, path.parent if path else None)
        check_tensor(tensor, what)
    check_functions(model, what)
    try:
        onnx.checker.check_model(outline(model))
    except (onnx.checker.ValidationError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"{what} breaks the rules of ONNX: {_one_line(error)}") from None
    newest = onnx.defs.onnx_opset_version()
    given = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if given > newest:
        raise ModelError(f"{what} is of opset {given}, and the onnx that is installed knows those up to {newest}; upgrade onnx")
    return inlined(model, what) if model.functions else model


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
