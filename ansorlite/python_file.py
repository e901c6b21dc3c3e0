"""What a user defines in a Python file or module, by name: ``"file.py:NAME"`` or ``"package.module:NAME"``.

It is run to get at what it defines: what it does besides belongs under ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ansorlite.errors import ArgumentError


def module_of(path: Path) -> ModuleType:
    """The file at ``path`` as a module. It is run once, and again when it has changed; what it prints goes to stderr.

    Raises:
        ArgumentError: there is no such file, it is no Python, imports what cannot be imported, or raises.
    """
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}")
    facts = path.stat()
    return _run(path.resolve(), facts.st_mtime_ns, facts.st_size)


def named(what: str, place: str) -> object:
    """What ``place`` names.

    Args:
        what: is to be found there, as messages call it: ``"rules"``, ``"a strategy"``.
        place: ``"file.py:NAME"`` or ``"package.module:NAME"``.

    Raises:
        ArgumentError: it is not of that form, there is no such file, module or name, or running it raises.
    """
    source, _, name = place.rpartition(":")
    if not source or not name:
        raise ArgumentError(f"{place!r} does not name {what}; write file.py:NAME or package.module:NAME")
    module = module_of(Path(source)) if source.endswith(".py") else _imported(source)
    if not hasattr(module, name):
        own = [key for key, value in vars(module).items() if not key.startswith("_") and not isinstance(value, ModuleType)]
        raise ArgumentError(f"{source} has no {name!r}; it has: {', '.join(own) or 'none'}")
    return getattr(module, name)


@functools.cache
def _run(path: Path, _time: int, _size: int) -> ModuleType:
    """The file as it is now."""
    name = f"{path.stem}_{hashlib.sha256(bytes(path)).hexdigest()[:8]}"  # two files may have one stem, or that of a library
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with _told(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _imported(name: str) -> ModuleType:
    with _told(name):
        return importlib.import_module(name)


@contextlib.contextmanager
def _told(source: str) -> Iterator[None]:
    """What goes wrong while ``source`` is run becomes one sentence; what it prints does not get between us and our stdout."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SyntaxError as error:
        raise ArgumentError(f"{error.filename or source}:{error.lineno} is no Python: {error.msg}; correct it") from error
    except ImportError as error:
        raise ArgumentError(f"{source} cannot be imported ({error}); install or correct what is missing") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
        where = f"{source}:{lines[-1]}" if lines else source
        what = f"{type(error).__name__} when it is imported ({' '.join(str(error).split())})"
        raise ArgumentError(f"{where} raises {what}; correct it") from error
