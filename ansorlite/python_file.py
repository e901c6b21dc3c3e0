"""A Python file of the user's, run to get at what it defines."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ansorlite.errors import ArgumentError


def module_of(path: Path) -> ModuleType:
    """The file at ``path`` as a module; what it does besides belongs under ``if __name__ == "__main__":``.

    Raises:
        ArgumentError: there is no such file, it is no Python, or imports what cannot be imported.
    """
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ArgumentError(f"{error.filename}:{error.lineno} is no Python: {error.msg}; correct it") from error
    except ImportError as error:
        raise ArgumentError(f"{path} imports what cannot be imported: {error}; install or correct it") from error
    return module
