"""Several large things in one file that is mapped, not read: what nobody touches costs nothing. All begin at cache lines."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence
from typing import BinaryIO, Final, TypeAlias

from ansorlite.alignment import ALIGNMENT, aligned

Part: TypeAlias = bytes | memoryview

_WORD: Final = struct.Struct("<Q")


def write_parts(file: BinaryIO, parts: Sequence[Part]) -> None:
    """Write ``parts`` (contiguous bytes), a table of their sizes and a checksum of all before them."""
    header = struct.pack(f"<{1 + len(parts)}Q", len(parts), *(len(part) for part in parts))
    checksum = 0
    for part in (header, *parts):
        for piece in (part, bytes(-len(part) % ALIGNMENT)):
            file.write(piece)
            checksum = zlib.crc32(piece, checksum)
    file.write(_WORD.pack(checksum))


def read_parts(descriptor: int) -> list[memoryview] | None:
    """What :func:`write_parts` wrote to this file, read-only; ``None`` if it is damaged."""
    try:
        whole = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    data, end = whole[: -_WORD.size], whole[-_WORD.size :]
    if len(end) != _WORD.size or _WORD.unpack(end) != (zlib.crc32(data),):
        return None
    (count,) = _WORD.unpack_from(data)
    if count > len(data) // _WORD.size - 1:
        return None
    sizes = struct.unpack_from(f"<{count}Q", data, _WORD.size)
    parts = []
    begin = aligned(_WORD.size * (1 + count))
    for size in sizes:
        parts.append(data[begin : begin + size])
        begin += aligned(size)
    return parts
