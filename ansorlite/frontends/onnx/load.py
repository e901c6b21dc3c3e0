"""From a file, bytes or a protobuf to a checked ONNX model. Whatever is wrong with it becomes one clear sentence."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

from ansorlite.errors import ArgumentError, ModelError
from ansorlite.frontends.onnx.file import File, Source
from ansorlite.frontends.onnx.outline import outline
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
    _check_external_data(model, what, path.parent if path else None)
    try:
        # Where data lie in other files, the checker needs to know from where it is to look for them.
        onnx.checker.check_model(outline(model) if path is None or not _external(model) else str(path))
    except (onnx.checker.ValidationError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"{what} breaks the rules of ONNX: {_one_line(error)}") from None
    newest = onnx.defs.onnx_opset_version()
    given = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if given > newest:
        raise ModelError(f"{what} is of opset {given}, and the onnx that is installed knows those up to {newest}; upgrade onnx")
    if path is not None:
        _load_external_data(model, what, path.parent)
    return _inlined(model, what) if model.functions else model


def _external(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Every tensor whose data are in another file, those in node attributes among them."""
    tensors = list(model.graph.initializer)
    tensors += [attribute.t for node in model.graph.node for attribute in node.attribute if attribute.HasField("t")]
    return [tensor for tensor in tensors if uses_external_data(tensor)]


def _check_external_data(model: onnx.ModelProto, what: str, folder: Path | None) -> None:
    for tensor in _external(model):
        if folder is None:
            raise ModelError(f"{what} keeps the data of {tensor.name!r} in another file; load it by its path")
        try:
            location = ExternalDataInfo(tensor).location
        except (ValueError, TypeError) as error:
            raise ModelError(f"{what}: where the data of {tensor.name!r} lie makes no sense: {_one_line(error)}") from None
        inside = (folder / location).resolve()
        if not inside.is_relative_to(folder.resolve()):
            raise ModelError(f"{what} looks for the data of {tensor.name!r} outside of its own folder, at {location!r}")
        if not inside.is_file():
            raise ModelError(f"{what} looks for the data of {tensor.name!r} in {location!r}, and there is no such file beside it")


def _load_external_data(model: onnx.ModelProto, what: str, folder: Path) -> None:
    try:
        load_external_data_for_model(model, str(folder))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{what}: its external data cannot be read: {_one_line(error)}") from None


def _inlined(model: onnx.ModelProto, what: str) -> onnx.ModelProto:
    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{what}: its functions cannot be expanded: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
