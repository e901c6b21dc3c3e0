"""What was computed once and can be used again by other processes: compiled programs, default programs, models cut into tasks."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import llvmlite

import ansorlite
from ansorlite.runtime.parts import Part, read_parts, write_parts

_log = logging.getLogger(__name__)

#: Environment variable: where the cache is; empty for none.
CACHE_VARIABLE: Final = "ANSORLITE_CACHE_DIR"

#: Bytes above which a process that adds to the cache first removes the half that was used longest ago.
_LIMIT: Final = 1 << 30

#: Nothing is kept that would take more than this share of it.
_LARGEST: Final = 4


class Cache(Protocol):
    """Bytes by key. What was put may be gone at any time."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, data: bytes) -> None: ...


class NoCache:
    """Keeps nothing."""

    def get(self, key: str) -> bytes | None:  # noqa: ARG002
        return None

    def put(self, key: str, data: bytes) -> None:
        pass

    def get_parts(self, key: str) -> list[memoryview] | None:  # noqa: ARG002
        return None

    def put_parts(self, key: str, parts: Sequence[Part]) -> None:
        pass


class DiskCache:
    """One file for each key, with a checksum: compressed, or in parts that are mapped. Any number of processes may use it."""

    def __init__(self, folder: Path, limit: int = _LIMIT) -> None:
        self._folder = folder
        self._limit = limit
        self._writable = True
        self._trimmed = False

    def get(self, key: str) -> bytes | None:
        file = self._folder / key
        try:
            compressed = file.read_bytes()
            data = zlib.decompress(compressed[_CHECKSUM:])
        except (OSError, zlib.error):
            return None
        if hashlib.sha256(data).digest() != compressed[:_CHECKSUM]:
            return None
        self._used(key)
        return data

    def put(self, key: str, data: bytes) -> None:
        self._write(key, lambda file: file.write(hashlib.sha256(data).digest() + zlib.compress(data, 1)))

    def get_parts(self, key: str) -> list[memoryview] | None:
        """Large things, read-only; they stay when the file goes."""
        parts = read_parts(self._folder / key)
        if parts is not None:
            self._used(key)
        return parts

    def put_parts(self, key: str, parts: Sequence[Part]) -> None:
        """Keep large things, each a run of bytes, as they are; not if that is a large share of all that may be kept."""
        if sum(map(len, parts)) <= self._limit // _LARGEST:
            self._write(key, lambda file: write_parts(file, parts))

    def _used(self, key: str) -> None:
        """Say that this is not what was used longest ago."""
        with contextlib.suppress(OSError):
            os.utime(self._folder / key)

    def _write(self, key: str, write: Callable[[BinaryIO], object]) -> None:
        if not self._writable:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._trim()
            # Whole or not at all, also for a process that reads it just now.
            descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    write(file)
                os.replace(name, self._folder / key)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._writable = False
            _log.warning(
                "compiled programs cannot be kept in %s (%s); set %s to one that can be written, or to nothing for no cache",
                self._folder,
                error.strerror,
                CACHE_VARIABLE,
            )

    def _trim(self) -> None:
        if self._trimmed:
            return
        self._trimmed = True
        files = sorted(((entry.stat(), entry.path) for entry in os.scandir(self._folder)), key=lambda pair: pair[0].st_mtime)
        total = sum(facts.st_size for facts, _ in files)
        if total <= self._limit:
            return
        for facts, path in files:
            if total <= self._limit // 2:
                break
            Path(path).unlink(missing_ok=True)
            total -= facts.st_size


_CHECKSUM: Final = hashlib.sha256().digest_size


def default_cache() -> DiskCache | NoCache:
    """In ``$ANSORLITE_CACHE_DIR``, or else in the user's folder for caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen == "":
        return NoCache()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return _disk_cache(Path(chosen) if chosen else Path(base) / "ansorlite")


@cache
def _disk_cache(folder: Path) -> DiskCache:
    """One for each folder, so that what is wrong with it is said once."""
    return DiskCache(folder)


def key(*parts: object) -> str:
    """A key of everything that ``parts`` say, of this version of ansorlite to the letter, and of LLVM's."""
    return hashlib.sha256(repr((_code(), llvmlite.__version__, parts)).encode()).hexdigest()


@cache
def _code() -> str:
    """A digest of ansorlite's own source: whatever changes it may change programs."""
    digest = hashlib.sha256()
    root = str(Path(ansorlite.__file__).parent)
    # Strings, not paths: hundreds of files in a third of the time.
    for file in sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")
    ):
        with open(file, "rb") as source:
            digest.update(file.removeprefix(root).encode() + b"\0" + source.read())
    return digest.hexdigest()
