"""The end of an exported library's file: a digest of all before it, so that what was damaged or cut off is never run."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import Final

#: What comes before the digest. Linkers and loaders do not read behind the tables of a library.
_MARK: Final = b"ansorlite library, SHA-1 of all before: "


def seal(library: Path) -> None:
    """Write the end of the file ``library``."""
    with library.open("rb+") as file:
        digest = hashlib.file_digest(file, _sha1).digest()
        file.write(_MARK + digest)


def sealed(library: bytes | mmap.mmap) -> bytes | None:
    """The digest of a library that is as it was written; else ``None``."""
    with memoryview(library) as whole:
        length = len(whole) - len(_MARK) - _sha1().digest_size
        if length < 0 or bytes(whole[length : length + len(_MARK)]) != _MARK:
            return None
        digest = _sha1(whole[:length]).digest()
        return digest if bytes(whole[length + len(_MARK) :]) == digest else None


def _sha1(data: bytes | memoryview = b"") -> hashlib._Hash:
    # As fast as SHA-256 where processors have instructions for them, and more than twice as fast elsewhere. It is no defence
    # against whoever writes the library: that is code, which says what it likes.
    return hashlib.sha1(data, usedforsecurity=False)
