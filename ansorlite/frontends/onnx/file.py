"""The bytes of an ONNX file, and where it lies."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from ansorlite.errors import ModelError

if TYPE_CHECKING:
    import onnx

#: What a model can be given as.
Source: TypeAlias = Union[str, os.PathLike[str], bytes, "onnx.ModelProto"]


@dataclass(frozen=True)
class File:
    """
    Attributes:
        data: what is in it.
        path: of the file, where that is known.
    """

    data: bytes
    path: Path | None

    @staticmethod
    def of(source: str | os.PathLike[str] | bytes) -> File:
        """
        Raises:
            ModelError: it cannot be read.
        """
        if isinstance(source, bytes):
            return File(source, None)
        path = Path(source)
        try:
            return File(path.read_bytes(), path)
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror or error}") from None

    @property
    def name(self) -> str:
        """For people."""
        return "the model" if self.path is None else str(self.path)
