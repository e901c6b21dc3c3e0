"""Tensors whose data lie in other files: only in such that are in the model's own folder."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto

from ansorlite.errors import ModelError
from ansorlite.frontends.onnx.tensors import nbytes


def is_external(tensor: TensorProto) -> bool:
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def load_external(tensor: TensorProto, what: str, folder: Path | None) -> None:
    """Put the data into ``tensor``.

    Args:
        folder: of the model; ``None`` where that is not known.

    Raises:
        ModelError: the file is outside of the folder, is not there, cannot be read, or has not the data.
    """
    if folder is None:
        raise ModelError(f"{what} keeps the data of {tensor.name!r} in another file; load it by its path")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = _path(location, tensor.name, what, folder)
    needed = nbytes(tensor)
    if needed is None:
        raise ModelError(f"{what} keeps the strings of {tensor.name!r} in {location!r}; strings must be in the model itself")
    offset = _count(entries.get("offset"), 0, "offset", tensor.name, what)
    length = _count(entries.get("length"), needed, "length", tensor.name, what)
    if length != needed:
        raise ModelError(f"{what}: tensor {tensor.name!r} takes {needed} bytes, and has {length} of {location!r}")
    try:
        with path.open("rb") as file:
            # Nobody makes room for what is not there.
            there = path.stat().st_size
            if there < offset + needed:
                raise ModelError(
                    f"{what} looks for the data of {tensor.name!r} in {location!r}, of which it needs {needed} bytes from "
                    f"{offset} on; it has only {there}"
                )
            file.seek(offset)
            tensor.raw_data = file.read(needed)
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"{what}: the data of {tensor.name!r} in {location!r} cannot be read: {reason}") from None
    tensor.ClearField("data_location")
    tensor.ClearField("external_data")


def _path(location: str, name: str, what: str, folder: Path) -> Path:
    if "\0" in location:
        raise ModelError(f"{what} looks for the data of {name!r} in {location!r}, and no file has a name with a NUL in it")
    try:
        inside = (folder / location).resolve()
        if not inside.is_relative_to(folder.resolve()):
            raise ModelError(f"{what} looks for the data of {name!r} outside of its own folder, at {location!r}")
        found = inside.is_file()
    except (OSError, RuntimeError) as error:
        # A name that is too long, say, or links that go round.
        raise ModelError(f"{what} looks for the data of {name!r} in {location!r}: {error}") from None
    if not found:
        raise ModelError(f"{what} looks for the data of {name!r} in {location!r}, and there is no such file beside it")
    return inside


def _count(text: str | None, default: int, key: str, name: str, what: str) -> int:
    """A number of bytes, which the format has as text."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelError(f"{what}: where the data of {name!r} lie makes no sense: its {key} is {text[:40]!r}")
    return int(text)
