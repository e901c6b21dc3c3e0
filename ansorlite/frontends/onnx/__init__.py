"""ONNX files → models."""

from typing import TYPE_CHECKING, Final

from ansorlite import lazy

if TYPE_CHECKING:
    from ansorlite.frontends.onnx.file import Source
    from ansorlite.frontends.onnx.kept import load_kept
    from ansorlite.frontends.onnx.loading import load_any, load_model

__all__ = ["Source", "load_any", "load_kept", "load_model"]

_HOMES: Final = {
    "Source": "ansorlite.frontends.onnx.file",
    "load_any": "ansorlite.frontends.onnx.loading",
    "load_kept": "ansorlite.frontends.onnx.kept",
    "load_model": "ansorlite.frontends.onnx.loading",
}

__getattr__, __dir__ = lazy.attributes(__name__, _HOMES)
