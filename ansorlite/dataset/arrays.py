"""Arrays from an ``.npz`` file of anybody's: nothing is unpickled, and no more is read than a file may hold."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: A file that says to hold more bytes than this is not read.
LARGEST: Final = 256 << 20
#: What a damaged archive may raise.
_BROKEN: Final = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error)


class UnreadableError(ValueError):
    """No arrays could be read; the message is the end of a sentence that says why."""


def stored(path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of the file that have these names, or all.

    Raises:
        UnreadableError: one is missing, damaged or pickled, or the file is none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise UnreadableError(f"it says to hold more than {LARGEST >> 20} MiB")
        with np.load(path, allow_pickle=False) as archive:
            wanted = archive.files if names is None else names
            missing = [name for name in wanted if name not in archive.files]
            if missing:
                raise UnreadableError(f"it has no column {missing[0]!r}")
            return {name: _array(archive, name) for name in wanted}
    except UnreadableError:
        raise
    except (OSError, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError, *_BROKEN) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableError(f"it is no whole .npz file ({why})") from None


def _array(archive: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(archive[name])
    except ValueError as error:
        if "pickle" in str(error):
            raise UnreadableError(f"its column {name!r} is pickled, and pickles are not read") from None
        raise UnreadableError(f"its column {name!r} is damaged") from None
