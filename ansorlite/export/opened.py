"""A library's file in this process: by what it holds, whatever its name. What happens to the file later is of no consequence."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from threading import Lock
from typing import Final

from ansorlite import processor
from ansorlite.errors import ModelError, TargetError
from ansorlite.export.seal import sealed
from ansorlite.temporary import TemporaryFolder

#: Digest → the library. The system's loader knows libraries by name, and by file; they are never unloaded.
_opened: Final[dict[bytes, ctypes.CDLL]] = {}
_lock: Final = Lock()

_DESCRIPTORS: Final = Path("/proc/self/fd")

_CHUNK: Final = 1 << 30

#: Where an ELF file has the number of its architecture, of two bytes, and the numbers of those that models are exported for.
_ELF_MACHINE: Final = 18
_ARCHITECTURES: Final = {62: "x86_64", 183: "aarch64"}


def open_library(file: Path) -> ctypes.CDLL:
    """The library that ``file`` holds now: a copy that nobody can change, or the one of equal content that is there already.

    Raises:
        ModelError: it is no library that was exported, not all of it, or damaged.
        TargetError: it was exported for another architecture.
        OSError: it cannot be read, or the system does not load it.
    """
    copy = os.memfd_create(file.name)
    kept = False
    try:
        _copy(file, copy)
        digest = _digest(copy)
        if digest is None:
            raise ModelError(
                f"{file.name} is not a model that this version of ansorlite exported, or it is damaged; export it again"
            )
        architecture = _ARCHITECTURES.get(int.from_bytes(os.pread(copy, 2, _ELF_MACHINE), "little"))
        if architecture not in {None, processor.ARCHITECTURE}:
            raise TargetError(
                f"{file.name} was exported for {architecture}, and this is {processor.ARCHITECTURE}: take it to such a machine, "
                f"or export the model here"
            )
        with _lock:
            if digest not in _opened:
                _opened[digest], kept = _loaded(copy, file.name)
            return _opened[digest]
    finally:
        if not kept:
            os.close(copy)


def _copy(file: Path, copy: int) -> None:
    source = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while os.sendfile(copy, source, None, _CHUNK):
            pass
    finally:
        os.close(source)


def _digest(copy: int) -> bytes | None:
    if not os.fstat(copy).st_size:
        return None
    with mmap.mmap(copy, 0, access=mmap.ACCESS_READ) as content:
        return sealed(content)


def _loaded(copy: int, name: str) -> tuple[ctypes.CDLL, bool]:
    """The library, and whether the descriptor must stay open: its number is a part of the name that the loader knows it by."""
    path = _DESCRIPTORS / f"{copy}"
    if path.exists():
        return ctypes.CDLL(str(path)), True
    with TemporaryFolder() as folder:  # a system without /proc
        elsewhere = folder / name
        with elsewhere.open("wb") as new, open(copy, "rb", closefd=False) as whole:
            whole.seek(0)
            while chunk := whole.read(1 << 24):
                new.write(chunk)
        return ctypes.CDLL(str(elsewhere)), False
