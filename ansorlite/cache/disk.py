"""What was computed once and can be used again by other processes: compiled programs, default programs, models cut into tasks.

What lies there is run, so only what is the user's own is used: the folder and each file must belong to the user, and nobody else
may write to them. Everything is asked of open descriptors, not of paths, which others may exchange meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeVar

import llvmlite

from ansorlite import visible
from ansorlite.cache.parts import Part, read_parts, write_parts

_log = visible.logger(__name__)

#: Environment variable: where the cache is; empty for none.
CACHE_VARIABLE: Final = "ANSORLITE_CACHE_DIR"

#: Bytes above which a process that adds to the cache first removes the half that was used longest ago.
_LIMIT: Final = 1 << 30

#: Nothing is kept that would take more than this share of it.
_LARGEST: Final = 4

#: What is there by :func:`key`, or is being written: nothing else in the folder is ever removed.
_OURS: Final = re.compile(r"[0-9a-f]{64}|\.[0-9a-f]{16}")

_CHECKSUM: Final = hashlib.sha256().digest_size

_Found = TypeVar("_Found")


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


class _UntrustedError(Exception):
    """A file or folder that is another user's, or that others may write to; the text says which and why."""


class DiskCache:
    """One file for each key, with a checksum: compressed, or in parts that are mapped. Any number of processes may use it.

    Where the folder, or a file in it, is not this user's own, it is as if it were not there, and one warning says so.
    """

    def __init__(self, folder: Path, limit: int = _LIMIT) -> None:
        self._folder = folder
        self._limit = limit
        self._writable = True
        self._trimmed = False
        self._trusted = True

    def get(self, key: str) -> bytes | None:
        compressed = self._read(key, _contents)
        if compressed is None:
            return None
        try:
            data = zlib.decompress(compressed[_CHECKSUM:])
        except zlib.error:
            return None
        return data if hashlib.sha256(data).digest() == compressed[:_CHECKSUM] else None

    def put(self, key: str, data: bytes) -> None:
        self._write(key, lambda file: file.write(hashlib.sha256(data).digest() + zlib.compress(data, 1)))

    def get_parts(self, key: str) -> list[memoryview] | None:
        """Large things, read-only; they stay when the file goes."""
        return self._read(key, read_parts)

    def put_parts(self, key: str, parts: Sequence[Part]) -> None:
        """Keep large things, each a run of bytes, as they are; not if that is a large share of all that may be kept."""
        if sum(map(len, parts)) <= self._limit // _LARGEST:
            self._write(key, lambda file: write_parts(file, parts))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder.

        Raises:
            OSError: there is none.
            _UntrustedError: it is not this user's own.
        """
        with _descriptor(self._folder, os.O_DIRECTORY) as folder:
            _check_own(os.fstat(folder), f"the folder {self._folder}")
            yield folder

    def _read(self, key: str, read: Callable[[int], _Found | None]) -> _Found | None:
        try:
            # A pipe is opened without waiting for who writes to it, and then refused.
            with self._opened() as folder, _descriptor(key, os.O_NOFOLLOW | os.O_NONBLOCK, folder) as file:
                facts = os.fstat(file)
                _check_own(facts, f"the file {key} in {self._folder}")
                found = read(file) if stat.S_ISREG(facts.st_mode) else None
                if found is not None:
                    with contextlib.suppress(OSError):
                        os.utime(file)  # not what was used longest ago
                return found
        except OSError:
            return None
        except _UntrustedError as error:
            self._distrust(error)
            return None

    def _write(self, key: str, write: Callable[[BinaryIO], object]) -> None:
        if not self._writable:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._opened() as folder:
                self._trim(folder)
                # Whole or not at all, also for a process that reads it just now.
                name = f".{secrets.token_hex(8)}"
                try:
                    with (
                        _descriptor(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder) as new,
                        open(new, "wb", closefd=False) as file,
                    ):
                        write(file)
                    os.replace(name, key, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
                    raise
        except _UntrustedError as error:
            self._distrust(error)
        except OSError as error:
            self._writable = False
            _log.warning(
                "compiled programs cannot be kept in %s (%s); set %s to one that can be written, or to nothing for no cache",
                self._folder,
                error.strerror,
                CACHE_VARIABLE,
            )

    def _distrust(self, error: _UntrustedError) -> None:
        if self._trusted:
            self._trusted = False
            _log.warning(
                "%s, so it is not used, as what it holds would be run: remove it, or make it your own (chown, chmod go-w) "
                "if you trust it; or set %s to a folder of your own, or to nothing for no cache",
                error,
                CACHE_VARIABLE,
            )

    def _trim(self, folder: int) -> None:
        if self._trimmed:
            return
        self._trimmed = True
        entries = [entry for entry in os.scandir(folder) if _OURS.fullmatch(entry.name)]
        files = sorted(((entry.stat(follow_symlinks=False), entry.name) for entry in entries), key=lambda pair: pair[0].st_mtime)
        total = sum(facts.st_size for facts, _ in files)
        if total <= self._limit:
            return
        for facts, name in files:
            if total <= self._limit // 2:
                break
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                os.unlink(name, dir_fd=folder)
            total -= facts.st_size


@contextmanager
def _descriptor(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    """An open file; one that is made can be read and written by its user only."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _contents(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _check_own(facts: os.stat_result, what: str) -> None:
    """Whether only this user can have written it.

    Raises:
        _UntrustedError: others can.
    """
    if facts.st_uid != os.geteuid():
        raise _UntrustedError(f"{what} belongs to user {facts.st_uid}, not to you (user {os.geteuid()})")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _UntrustedError(f"{what} may be written to by others (its mode is {stat.S_IMODE(facts.st_mode):o})")


def default_cache() -> DiskCache | NoCache:
    """In ``$ANSORLITE_CACHE_DIR``, or else in the user's folder for caches; none for who has no home."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return _disk_cache(Path(chosen)) if chosen else NoCache()
    base = _caches_of_user()
    return NoCache() if base is None else _disk_cache(base / "ansorlite")


def _caches_of_user() -> Path | None:
    """The folder for this user's caches, if there is one."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given)
    try:
        return Path("~/.cache").expanduser()
    except RuntimeError:  # neither $HOME nor an entry among the system's users
        _warn_of_no_home()
        return None


@cache
def _warn_of_no_home() -> None:
    """Once."""
    _log.warning(
        "this user has no home folder, so compiled programs are not kept; set %s to a folder of your own", CACHE_VARIABLE
    )


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
    root = str(Path(__file__).parent.parent)
    # Strings, not paths: hundreds of files in a third of the time.
    for file in sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")
    ):
        with open(file, "rb") as source:
            digest.update(file.removeprefix(root).encode() + b"\0" + source.read())
    return digest.hexdigest()
